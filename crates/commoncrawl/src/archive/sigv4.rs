//! AWS Signature Version 4, for requests without a query.

use fetchwell_engine::web::Request;
use fetchwell_policy::digest::{hex, sha256_hex};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Scheme, WebUrl};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Signs requests. It has no `Debug`, so that it cannot be printed by accident.
pub(super) struct Signer {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: Zeroizing<String>,
    pub(super) session_token: Option<Zeroizing<String>>,
    pub(super) region: String,
}

impl Signer {
    /// The headers that sign a request at this time.
    pub(super) fn headers(&self, request: &Request, wall: Time) -> Vec<(&'static str, String)> {
        let time = amz_time(wall);
        let body_hash = sha256_hex(&request.body);
        let range = request.headers.iter().find(|(name, _)| *name == "range");
        let token = self.session_token.as_ref().map(|token| token.to_string());
        let mut signed = vec![("host", authority(&request.url))];
        signed.extend(range.cloned());
        signed.push(("x-amz-content-sha256", body_hash.clone()));
        signed.push(("x-amz-date", time.clone()));
        signed.extend(token.map(|token| ("x-amz-security-token", token)));
        let authorization = self.authorization(request, &signed, &body_hash, &time);
        // The client adds the Host header itself, and the request already has the range.
        signed.retain(|(name, _)| name.starts_with("x-amz-"));
        signed.push(("authorization", authorization));
        signed
    }

    /// `headers` must be sorted by name.
    fn authorization(
        &self,
        request: &Request,
        headers: &[(&str, String)],
        body_hash: &str,
        time: &str,
    ) -> String {
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let path = canonical_path(request.url.path_and_query());
        let method = &request.method;
        let request = format!("{method}\n{path}\n\n{lines}\n{names}\n{body_hash}");
        let day = time.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let digest = sha256_hex(request.as_bytes());
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
        let signature = hex(&hmac(self.key(day).as_slice(), text.as_bytes()));
        let credential = format!("{}/{scope}", self.access_key_id);
        format!(
            "AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature={signature}"
        )
    }

    /// The key for this day, region and service, derived from the secret.
    fn key(&self, day: &str) -> Zeroizing<[u8; 32]> {
        let secret = Zeroizing::new(format!("AWS4{}", self.secret_access_key.as_str()));
        let mut key = Zeroizing::new(hmac(secret.as_bytes(), day.as_bytes()));
        for part in [self.region.as_str(), "s3", "aws4_request"] {
            *key = hmac(key.as_slice(), part.as_bytes());
        }
        key
    }
}

/// `20130524T000000Z`
fn amz_time(wall: Time) -> String {
    Timestamp::from_microsecond(wall.as_micros())
        .map_or_else(|_| String::new(), |time| time.strftime("%Y%m%dT%H%M%SZ").to_string())
}

/// The value of the `Host` header that the client sends.
fn authority(url: &WebUrl) -> String {
    let default_port = match url.scheme() {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    match url.port() {
        port if port == default_port => url.host().to_owned(),
        port => format!("{}:{port}", url.host()),
    }
}

/// Percent-encodes all but the unreserved characters and the slash. File names of an archive contain no escapes.
fn canonical_path(path: &str) -> String {
    let mut canonical = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                canonical.push(char::from(byte));
            }
            _ => canonical.push_str(&format!("%{byte:02X}")),
        }
    }
    canonical
}

fn hmac(key: &[u8], content: &[u8]) -> [u8; 32] {
    // HMAC accepts a key of any length, but the type still returns a `Result`.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(content);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(session_token: Option<&str>) -> Signer {
        Signer {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned().into(),
            session_token: session_token.map(|token| token.to_owned().into()),
            region: "us-east-1".to_owned(),
        }
    }

    /// 24 May 2013, midnight.
    const THEN: Time = Time::from_secs(1_369_353_600);

    #[test]
    fn the_signature_is_the_one_that_the_documentation_of_s3_works_out() {
        let url = WebUrl::parse("https://examplebucket.s3.amazonaws.com/test.txt").unwrap();
        let request = Request::ungoverned(url).with_header("range", "bytes=0-9");
        let headers = signer(None).headers(&request, THEN);
        let value = |wanted: &str| {
            headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str())
        };
        assert_eq!(value("x-amz-date"), Some("20130524T000000Z"));
        assert_eq!(
            value("authorization"),
            Some(
                "AWS4-HMAC-SHA256 \
                 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
                 SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
                 Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
            )
        );
    }

    #[test]
    fn a_token_is_sent_and_signed() {
        let url = WebUrl::parse("http://127.0.0.1:9000/bucket/a=b+c").unwrap();
        let request = Request::ungoverned(url.clone()).with_header("range", "bytes=0-9");
        let headers = signer(Some("secret-token")).headers(&request, THEN);
        assert!(headers.contains(&("x-amz-security-token", "secret-token".to_owned())));
        let (_, authorization) = headers.last().unwrap();
        assert!(authorization.contains(";x-amz-security-token,"), "{authorization}");
        assert_eq!(authority(&url), "127.0.0.1:9000");
        assert_eq!(canonical_path("/bucket/a=b+c"), "/bucket/a%3Db%2Bc");
    }
}
