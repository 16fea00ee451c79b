//! The limits for reading a page, which several doors share.

use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_settings::Values;

pub(crate) fn read_limits(values: &Values) -> ReadLimits {
    let max_text_bytes = usize::try_from(values.extract_max_text).unwrap_or(usize::MAX);
    ReadLimits { max_text_bytes, max_time: values.extract_max_time }
}
