//! Parses forms and queries.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use fetchwell_policy::time::Time;
use http::Uri;
use tokio::time::timeout;
use url::form_urlencoded;

use crate::dashboard::fault::PageError;

/// The maximum size of a form; ours are far smaller.
const MOST_BYTES: usize = 64 << 10;
/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// The fields of a form, in order.
#[derive(Debug, Default)]
pub(in super::super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) async fn read(body: Body) -> Result<Form, PageError> {
        let bytes = timeout(PATIENCE, to_bytes(body, MOST_BYTES)).await;
        let Ok(Ok(bytes)) = bytes else {
            return Err(PageError::BadRequest("the form is too large, or took too long to arrive"));
        };
        Ok(Form::of(&bytes))
    }

    /// Parses the query of a URL.
    pub(in super::super) fn of_query(uri: &Uri) -> Form {
        Form::of(uri.query().unwrap_or_default().as_bytes())
    }

    /// Parses the query of a URL, or a body.
    pub(in super::super) fn of(bytes: &[u8]) -> Form {
        Form(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A field; an empty one counts as missing.
    pub(in super::super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// All values of a field that may be repeated, at most `most`.
    pub(in super::super) fn all(&self, name: &str, most: usize) -> Vec<&str> {
        let found = self.0.iter().filter(|(found, _)| found == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty()).take(most).collect()
    }

    /// A time, in microseconds, if the field is there.
    pub(in super::super) fn time(&self, name: &str) -> Result<Option<Time>, PageError> {
        let micros = self.text(name).map(str::parse::<i64>).transpose();
        let micros = micros.map_err(|_| PageError::BadRequest("the time in the form is invalid"));
        Ok(micros?.map(Time::from_micros))
    }

    /// A required field.
    pub(in super::super) fn need(&self, name: &'static str) -> Result<&str, PageError> {
        self.text(name)
            .ok_or(PageError::BadRequest("the form is incomplete; reload the page and try again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let form = Form::of(b"a=1+2&b=%C3%A4&empty=+&a=3");
        assert_eq!((form.text("a"), form.text("b")), (Some("1 2"), Some("ä")));
        assert_eq!((form.text("empty"), form.text("c")), (None, None));
        assert_eq!((form.all("a", 9), form.all("a", 1)), (vec!["1 2", "3"], vec!["1 2"]));
        assert!(form.need("b").is_ok() && form.need("empty").is_err());
        let form = Form::of(b"at=1500000&odd=soon");
        assert_eq!(form.time("at").unwrap(), Some(Time::from_micros(1_500_000)));
        assert_eq!(form.time("c").unwrap(), None);
        assert!(form.time("odd").is_err());
    }
}
