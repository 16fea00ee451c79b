//! `fetchwell commoncrawl work`, as its users run it: batches on RabbitMQ or in the store, an archive that
//! answers ranges, and a folder of documents that is judged from outside.
//!
//! What needs RabbitMQ or Python says that it skips where they are not named.

mod archive;
mod broker;
mod crash;
mod documents;
mod failures;
mod ground;
mod memory;
mod python;
mod whole;
