//! URLs as jobs for the queue.

use fetchwell_engine::ports::job::{Job, Lane, NewJob, job_key};
use fetchwell_policy::url::WebUrl;

/// Jobs for the queue. An invalid URL also gets one: it ends with a row that says so.
pub fn jobs<'a>(urls: impl IntoIterator<Item = &'a String>) -> Vec<NewJob> {
    let job = |url: &String| {
        let site = WebUrl::parse(url).ok().map(|parsed| parsed.site());
        let key = Some(job_key(site.as_ref(), url));
        let lane = Lane::default();
        let payload = Vec::new();
        let deadline = None;
        NewJob { job: Job { url: url.clone(), site, lane, payload, deadline }, key, due: None }
    };
    urls.into_iter().map(job).collect()
}
