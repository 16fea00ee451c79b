//! What the inbox of `fetchwell serve` takes in and gives out, beside bare loops on the same store.
//!
//! | file | |
//! |---|---|
//! | `store` | a fresh store for each trial |
//! | `program` | the real program on it |
//! | `client`, `load` | what posts to it, and how fast that goes |
//! | `message` | what is posted |
//! | `adapter` | the store without the program |
//! | `bare_sqlite`, `bare_postgres` | the loops that it is compared with |
//! | `accepting`, `whole`, `claims`, `plans`, `looking` | the measurements |
//! | `against` | a program beside an earlier one |

pub mod accepting;
mod adapter;
pub mod against;
mod bare_postgres;
mod bare_sqlite;
pub mod claims;
mod client;
mod load;
pub mod looking;
mod message;
mod plans;
mod program;
pub mod store;
pub mod whole;
