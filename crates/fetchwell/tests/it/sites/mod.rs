//! Sites and orders to them: the real program, by commands and by its API, judged at the origin.

mod api;
mod commands;
mod orders;
