//! `fetchwell health`: checks whether a service is ready, for containers without another HTTP client.

use std::time::Duration;

use fetchwell_engine::http::operator_client::{NoAnswer, OperatorClient};
use fetchwell_engine::web::Request;
use fetchwell_policy::url::{UrlFault, WebUrl};

use crate::console::exit::Exit;
use crate::console::output::Running;

/// The timeout of each request.
const PATIENCE: Duration = Duration::from_secs(3);

/// The pages to request if the URL has no path. Commands that only serve metrics have no `/readyz`.
const HEALTH_PAGES: [&str; 2] = ["/readyz", "/livez"];

/// Requests this URL; any 2xx means healthy.
pub(crate) fn run(url: &str) -> Running<'_> {
    Box::pin(async move {
        let urls = health_urls(url).map_err(|fault| {
            Exit::Usage(format!(
                "could not check {url}: {fault}; use a URL such as http://127.0.0.1:8080"
            ))
        })?;
        let client = OperatorClient::new(PATIENCE)?;
        let mut last = Ok(Exit::Ok);
        for url in urls {
            match client.ask(&Request::ungoverned(url.clone())).await {
                Ok(_) => return Ok(Exit::Ok),
                // There is no such page; try the next one.
                Err(why @ NoAnswer::Status(404)) => last = Err(unhealthy(&url, &why)),
                Err(why) => return Err(unhealthy(&url, &why)),
            }
        }
        last
    })
}

fn unhealthy(url: &WebUrl, why: &NoAnswer) -> Exit {
    Exit::Unreachable(format!("{} {why}", url.as_str()))
}

/// The URL itself; without a path, the health pages of that server.
fn health_urls(text: &str) -> Result<Vec<WebUrl>, UrlFault> {
    let url = WebUrl::parse(text)?;
    if url.path_and_query() != "/" {
        return Ok(vec![url]);
    }
    HEALTH_PAGES.into_iter().map(|page| url.join(page)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_means_its_health_pages() {
        let asked = |text: &str| -> Vec<String> {
            let urls = health_urls(text).unwrap();
            urls.iter().map(|url| url.as_str().to_owned()).collect()
        };
        let both = ["http://a.test:8080/readyz", "http://a.test:8080/livez"];
        assert_eq!(asked("http://a.test:8080"), both);
        assert_eq!(asked("http://a.test:8080/"), both);
        assert_eq!(asked("http://a.test:8080/livez"), ["http://a.test:8080/livez"]);
        assert_eq!(asked("http://a.test/?x"), ["http://a.test/?x"]);
        assert!(health_urls("a.test:8080").is_err());
    }
}
