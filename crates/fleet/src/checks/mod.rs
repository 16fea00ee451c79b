//! What must hold in every run, judged from outside: by what the stores carried out and by what the sites saw.

pub(crate) mod jobs;
pub(crate) mod requests;
