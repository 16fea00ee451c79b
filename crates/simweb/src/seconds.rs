//! Durations as JSON numbers of seconds; the field's name ends in `_s`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(duration.as_secs_f64())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(de::Error::custom)
}

/// The same for a duration that may be absent.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(|some| some.as_secs_f64()).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(from)?
            .map(Duration::try_from_secs_f64)
            .transpose()
            .map_err(de::Error::custom)
    }
}
