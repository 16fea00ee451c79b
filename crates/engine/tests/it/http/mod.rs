//! The HTTP client over loopback, against servers that follow a script to the byte.

mod bodies;
mod budget;
mod client;
mod encoding;
mod faults;
mod guard;
mod http2;
mod keep_alive;
mod line;
mod requests;
mod script;
mod send_permit;
mod time_limits;
mod tls;
