//! The dashboard as visitors meet it: over HTTP, and in a real browser.

mod access;
mod acting;
mod browser;
mod bulk;
mod callers;
mod hostile_pages;
mod letters;
mod place;
mod rendering;
mod status;
mod visit;
