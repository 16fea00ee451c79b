//! What a running process answers by HTTP: an API, a dashboard, metrics.
//!
//! From the bottom up: `problem` writes errors, [`server`] handles connections, [`auth`] tokens, [`audit`] the audit
//! log, [`views`] the JSON that API, dashboard and commands share, [`sites`] the state of sites and orders to them.
//! [`api`] and [`dashboard`] rest on these and know nothing of each other; [`router`] puts both into one router.

pub mod api;
pub mod audit;
pub mod auth;
pub mod dashboard;
pub mod metrics_server;
mod problem;
pub mod server;
pub mod sites;
pub mod views;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;

use api::Api;
use dashboard::Dashboard;

/// Everything that `serve` answers: the API, and the dashboard beside it.
pub fn router(api: &Arc<Api>, dashboard: &Arc<Dashboard>, listens_on: SocketAddr) -> Router {
    api::router(api, dashboard::router(dashboard), listens_on)
}
