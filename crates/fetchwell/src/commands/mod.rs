//! The commands, one module each. `args` has argument helpers that they share.

pub(crate) mod args;
pub(crate) mod articles;
pub(crate) mod commoncrawl;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod feeds;
pub(crate) mod fetch;
pub(crate) mod health;
pub(crate) mod messages;
pub(crate) mod pages;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod sites;
pub(crate) mod top;
