//! The HTTP servers of a running process: the API, the dashboard and the metrics.
//!
//! From the bottom up: `problem` writes errors, [`server`] handles connections, [`auth`] tokens, [`audit`] the audit
//! log, [`views`] the JSON that API, dashboard and commands share, [`sites`] the state of sites and the orders for
//! them, [`callers`] the callers and their tokens. [`api`] and [`dashboard`] build on these and are independent of each
//! other; [`router`] combines them.

pub mod api;
pub mod audit;
pub mod auth;
pub mod callers;
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

/// The router of `serve`: the API and the dashboard.
pub fn router(api: &Arc<Api>, dashboard: &Arc<Dashboard>, listens_on: SocketAddr) -> Router {
    api::router(api, dashboard::router(dashboard), listens_on)
}
