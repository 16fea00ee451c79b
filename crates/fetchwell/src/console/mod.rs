//! The command line interface that all commands share: exit codes, output, tables, the terminal, signals, logs, and
//! lists of URLs.

pub(crate) mod exit;
pub(crate) mod logs;
pub(crate) mod output;
pub(crate) mod signals;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod url_lists;
