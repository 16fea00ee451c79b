//! An archive in a bucket: ordinary range requests over HTTPS, signed if there are keys.
//!
//! The usual client libraries bring their own HTTP client, which would bypass the gate and the address guard. Reading a
//! bucket takes only plain GET requests, so a URL and a signature are enough.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::web::{Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::url::WebUrl;

use super::ArchiveError;
use super::sigv4::Signer;

const DEFAULT_REGION: &str = "us-east-1";

/// A bucket, configured by the variables that the AWS tools read.
pub(super) struct Bucket {
    /// The URL of its objects, including the prefix.
    pub(super) root: WebUrl,
    /// `None` for anonymous access.
    pub(super) signer: Option<Signer>,
}

impl Bucket {
    pub(super) fn new(
        bucket: &str,
        prefix: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<Bucket, ArchiveError> {
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let address = address(bucket, prefix, region, endpoint);
        let root = WebUrl::parse(&address)
            .map_err(|source| ArchiveError::BucketUrl { address, source })?;
        let keys = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"));
        let signer = match keys {
            (Some(id), Some(secret)) => Some(Signer {
                access_key_id: id.clone(),
                secret_access_key: secret.clone().into(),
                session_token: variable("AWS_SESSION_TOKEN").map(|token| token.clone().into()),
                region: region.map_or(DEFAULT_REGION, String::as_str).to_owned(),
            }),
            (None, None) => None,
            _ => return Err(ArchiveError::HalfKeys),
        };
        Ok(Bucket { root, signer })
    }
}

/// With other servers than AWS, and with names that AWS's wildcard certificate does not cover, the bucket is in the
/// path.
fn address(
    bucket: &str,
    prefix: &str,
    region: Option<&String>,
    endpoint: Option<&String>,
) -> String {
    let host = region.map_or("s3.amazonaws.com".to_owned(), |r| format!("s3.{r}.amazonaws.com"));
    match endpoint {
        Some(endpoint) => format!("{}/{bucket}/{prefix}", endpoint.trim_end_matches('/')),
        None if bucket.contains('.') => format!("https://{host}/{bucket}/{prefix}"),
        None => format!("https://{bucket}.{host}/{prefix}"),
    }
}

/// Signs the requests to the bucket when they are sent.
pub(super) struct SignedWeb {
    pub(super) inner: Arc<dyn Web>,
    pub(super) root: WebUrl,
    pub(super) signer: Signer,
    pub(super) clock: Clock,
}

#[async_trait]
impl Web for SignedWeb {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        let is_range = request.headers.iter().any(|(name, _)| *name == "range");
        let is_ours = request.url.as_str().starts_with(self.root.as_str());
        if !is_range || !is_ours {
            return self.inner.exchange(request, leave, phases).await;
        }
        let mut signed = request.clone();
        signed.headers.extend(self.signer.headers(request, self.clock.wall()));
        self.inner.exchange(&signed, leave, phases).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(name: &str, variables: &[(&str, &str)]) -> Result<Bucket, ArchiveError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Bucket::new(name, "p/", &variables.iter().map(owned).collect())
    }

    #[test]
    fn a_bucket_has_an_address() {
        let region = ("AWS_REGION", "eu-west-1");
        for (name, variables, want) in [
            ("cc", &[][..], "https://cc.s3.amazonaws.com/p/"),
            ("cc", &[region][..], "https://cc.s3.eu-west-1.amazonaws.com/p/"),
            ("a.b", &[region][..], "https://s3.eu-west-1.amazonaws.com/a.b/p/"),
            (
                "cc",
                &[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/")][..],
                "http://127.0.0.1:9000/cc/p/",
            ),
        ] {
            let bucket = bucket(name, variables).ok().unwrap();
            assert_eq!(bucket.root.as_str(), want);
            assert!(bucket.signer.is_none());
        }
    }

    #[test]
    fn keys_come_in_pairs() {
        let id = ("AWS_ACCESS_KEY_ID", "x");
        let secret = ("AWS_SECRET_ACCESS_KEY", "y");
        let signer = bucket("cc", &[id, secret]).ok().and_then(|bucket| bucket.signer);
        assert_eq!(signer.map(|signer| signer.region).as_deref(), Some("us-east-1"));
        assert!(bucket("cc", &[id]).is_err());
        assert!(bucket("cc", &[secret]).is_err());
        assert!(bucket("cc", &[("AWS_ENDPOINT_URL", "nonsense")]).is_err());
    }
}
