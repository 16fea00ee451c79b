use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use parking_lot::{Mutex, MutexGuard};

use crate::exchange::{SimRequest, SimResponse};
use crate::hit::{Hit, HitKind};
use crate::page;
use crate::path_rule::PathAction;
use crate::script::SiteScript;

/// A running site: its script and its state.
pub(crate) struct SimSite {
    name: Arc<str>,
    pub(crate) script: SiteScript,
    /// Each site has its own lock, and a hit takes no other, so sites never wait for each other.
    past: Mutex<Past>,
}

#[derive(Default)]
struct Past {
    hits: Vec<Hit>,
    last_accepted_at: Option<Duration>,
    /// By the index of the failing rule, and the path.
    failures: HashMap<(usize, String), u32>,
}

impl SimSite {
    pub(crate) fn new(name: Arc<str>, script: SiteScript) -> SimSite {
        SimSite { name, script, past: Mutex::default() }
    }

    pub(crate) fn answer(&self, at: Duration, request: &SimRequest<'_>) -> SimResponse {
        let mut past = self.past();
        let mut answer = self.scripted(&mut past, at, request);
        let user_agent = past.user_agent(request.user_agent);
        past.hits.push(Hit {
            at,
            site: Arc::clone(&self.name),
            method: request.method.clone(),
            path: request.path_and_query.into(),
            status: answer.visible_status(),
            user_agent,
            kind: HitKind::of(request),
        });
        if request.method == Method::HEAD {
            answer.body = Bytes::new();
        }
        answer
    }

    pub(crate) fn hits(&self) -> Vec<Hit> {
        self.past().hits.clone()
    }

    pub(crate) fn take_hits(&self) -> Vec<Hit> {
        std::mem::take(&mut self.past().hits)
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Hit) -> bool) -> usize {
        self.past().hits.iter().filter(|hit| wanted(hit)).count()
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock()
    }

    fn scripted(&self, past: &mut Past, at: Duration, request: &SimRequest<'_>) -> SimResponse {
        if let Some(failure) = self.script.failure_at(at) {
            return failure.answer();
        }
        let answer = if request.is_for_robots() {
            self.script.robots.answer()
        } else if let Some(too_soon) = self.limited(past, at) {
            too_soon
        } else {
            self.at_path(past, request)
        };
        SimResponse {
            first_byte_after: self.script.first_byte_after,
            body_over: self.script.body_over,
            ..answer
        }
    }

    fn limited(&self, past: &mut Past, at: Duration) -> Option<SimResponse> {
        let limiter = self.script.strict_limiter.as_ref()?;
        let too_soon = past
            .last_accepted_at
            .is_some_and(|last| at.saturating_sub(last) < limiter.min_interval);
        if too_soon {
            return Some(SimResponse::of_status(429).with_retry_after(limiter.retry_after));
        }
        past.last_accepted_at = Some(at);
        None
    }

    fn at_path(&self, past: &mut Past, request: &SimRequest<'_>) -> SimResponse {
        let path = request.path_and_query;
        let rules = self.script.paths.iter().enumerate();
        rules
            .filter(|(_, rule)| rule.matches(path))
            .find_map(|(index, rule)| self.act(past, index, &rule.act, request))
            .unwrap_or_else(|| self.page(path))
    }

    /// The answer of a matching rule; `None` if its failures are used up.
    fn act(
        &self,
        past: &mut Past,
        index: usize,
        act: &PathAction,
        request: &SimRequest<'_>,
    ) -> Option<SimResponse> {
        let path = request.path_and_query;
        Some(match act {
            PathAction::Redirect(location) => SimResponse::redirect(302, location),
            PathAction::Moved(location) => SimResponse::redirect(301, location),
            PathAction::Status(status) => SimResponse::of_status(*status),
            PathAction::Busy { status, retry_after } => {
                SimResponse::of_status(*status).with_retry_after(Some(*retry_after))
            }
            PathAction::Tagged { etag, .. } if request.if_none_match == etag => {
                SimResponse::of_status(304).with_header("etag", etag)
            }
            PathAction::Tagged { content_type, text, etag } => {
                SimResponse::new(200, content_type, text.clone()).with_header("etag", etag)
            }
            PathAction::FailsFirst { times, status } => {
                return past
                    .fails_again(index, path, *times)
                    .then(|| SimResponse::of_status(*status));
            }
            PathAction::Text { content_type, text } => {
                SimResponse::new(200, content_type, text.clone())
            }
            PathAction::Gzip { content_type, text } => {
                SimResponse::new(200, content_type, page::gzip(text))
            }
            PathAction::Binary { content_type, size_bytes } => {
                SimResponse::new(200, content_type, page::noise(&self.name, path, *size_bytes))
            }
            PathAction::Manner(manner) => self.page(path).with_manner(*manner),
        })
    }

    fn page(&self, path: &str) -> SimResponse {
        let html = page::page(&self.name, path, self.script.page_bytes);
        SimResponse::new(200, &self.script.content_type, html)
    }
}

impl Past {
    /// Nearly all hits of a site come from one client, so its name is stored once.
    fn user_agent(&self, user_agent: &str) -> Arc<str> {
        match self.hits.last() {
            Some(last) if *last.user_agent == *user_agent => Arc::clone(&last.user_agent),
            _ => user_agent.into(),
        }
    }

    /// Whether the rule has a failure left for the path; if so, it is used up.
    fn fails_again(&mut self, rule_index: usize, path: &str, times: u32) -> bool {
        let failures = self.failures.entry((rule_index, path.to_owned())).or_default();
        let again = *failures < times;
        *failures += u32::from(again);
        again
    }
}
