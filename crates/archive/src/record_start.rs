//! The first bytes of a WARC record, by which the readers of WARC and of gzip members find the next one.

/// Compared without regard to case, because some writers use lower case.
const START: &[u8] = b"WARC/";
pub(crate) const START_BYTES: usize = START.len();

/// Whether the input begins like a record.
pub(crate) fn starts_record(bytes: &[u8]) -> bool {
    bytes.get(..START_BYTES).is_some_and(|found| found.eq_ignore_ascii_case(START))
}

/// Whether the input is empty or ends within the first bytes of a record.
pub(crate) fn is_truncated_start(bytes: &[u8]) -> bool {
    START.get(..bytes.len()).is_some_and(|found| found.eq_ignore_ascii_case(bytes))
}
