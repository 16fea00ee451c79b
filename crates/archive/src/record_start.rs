//! The first bytes of a WARC record, by which the readers of WARC and of gzip members find the next one.

/// Some writers use lower case.
const BEGINNING: &[u8] = b"WARC/";
pub(crate) const BEGINNING_BYTES: usize = BEGINNING.len();

/// Whether the input begins like a record.
pub(crate) fn begins_record(bytes: &[u8]) -> bool {
    bytes.get(..BEGINNING_BYTES).is_some_and(|start| start.eq_ignore_ascii_case(BEGINNING))
}

/// Whether the input is empty or ends within the first bytes of a record.
pub(crate) fn is_cut_beginning(bytes: &[u8]) -> bool {
    BEGINNING.get(..bytes.len()).is_some_and(|start| start.eq_ignore_ascii_case(bytes))
}
