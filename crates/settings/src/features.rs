//! The Cargo features that a build can leave out, and the error for a setting that needs a missing one.

use std::sync::LazyLock;

use fetchwell_engine::ports::store_url::StoreUrl;

use super::fault::Wrong;

/// A part of the program that a build may leave out.
#[derive(Clone, Copy)]
pub struct Feature {
    /// Its name in Cargo.toml.
    name: &'static str,
    /// The server or format that it is for.
    product: &'static str,
    /// Whether this build has it.
    is_on: bool,
}

macro_rules! feature {
    ($name:literal, $product:literal) => {
        Feature { name: $name, product: $product, is_on: cfg!(feature = $name) }
    };
}

pub const KAFKA: Feature = feature!("kafka", "Kafka");
pub const RABBITMQ: Feature = feature!("rabbitmq", "RabbitMQ");
pub const PARQUET: Feature = feature!("parquet", "Parquet");

macro_rules! with_stores {
    ($($store:ident: $constant:ident, $name:literal, $product:literal;)+) => {
        $(pub const $constant: Feature = feature!($name, $product);)+

        const ALL: &[Feature] = &[$($constant,)+ KAFKA, RABBITMQ, PARQUET];

        /// The feature that a store needs; a file needs none.
        pub(super) fn of_store(store: &StoreUrl) -> Option<Feature> {
            match store {
                StoreUrl::Sqlite(_) => None,
                $(StoreUrl::$store(_) => Some($constant),)+
            }
        }
    };
}

fetchwell_engine::for_server_stores!(with_stores);

impl Feature {
    /// Returns an error if this build does not have it.
    pub fn require(&self) -> Result<(), Wrong> {
        if self.is_on { Ok(()) } else { Err(self.missing()) }
    }

    /// The error for a setting that needs it, if this build does not have it.
    pub fn missing(&self) -> Wrong {
        let Feature { name, product, .. } = self;
        Wrong::new(
            format!("needs {product}, and this fetchwell was built without it"),
            format!("build it with --features {name}, or use the package, which has every feature"),
        )
    }
}

/// The names of the features of this build.
pub fn built_with() -> String {
    let names: Vec<_> = ALL.iter().filter(|feature| feature.is_on).map(|one| one.name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The text that `--version` prints after the program's name. `-V` prints only the first line.
pub fn long_version() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| format!("{}\nfeatures: {}", env!("CARGO_PKG_VERSION"), built_with()));
    &TEXT
}

#[cfg(test)]
mod tests {
    use super::super::addresses::BROKER;
    use super::super::choices::WritableFormat;
    use super::super::combined::Needs;
    use super::super::kinds::Kind;
    use super::super::layer::Raw;
    use super::super::servers::SERVERS;
    use super::*;

    fn without(feature: Feature) -> Feature {
        Feature { is_on: false, ..feature }
    }

    fn refusal<K: Kind>(kind: &K, text: &str) -> Option<Wrong> {
        kind.read(&Raw::One(text.to_owned())).err()
    }

    #[test]
    fn a_missing_feature_is_named_with_the_way_to_get_it() {
        for feature in ALL {
            assert_eq!(Feature { is_on: true, ..*feature }.require(), Ok(()));
            let wrong = without(*feature).require().unwrap_err();
            assert!(wrong.problem.contains(feature.product), "{}", wrong.problem);
            assert!(wrong.mend.contains(&format!("--features {}", feature.name)), "{}", wrong.mend);
        }
    }

    #[test]
    fn a_setting_that_needs_a_missing_feature_is_refused() {
        let kafka = refusal(&Needs(without(KAFKA), SERVERS), "kafka.test:9092");
        assert_eq!(kafka, Some(KAFKA.missing()));
        let rabbitmq = refusal(&Needs(without(RABBITMQ), BROKER), "amqp://rabbit.test/%2f");
        assert_eq!(rabbitmq, Some(RABBITMQ.missing()));
        let parquet = refusal(&WritableFormat(without(PARQUET)), "parquet");
        assert_eq!(parquet, Some(PARQUET.missing()));
        assert_eq!(refusal(&WritableFormat(without(PARQUET)), "jsonl.zst"), None);
    }

    #[test]
    fn this_build_has_what_it_says() {
        for feature in ALL {
            assert_eq!(long_version().contains(feature.name), feature.is_on, "{}", feature.name);
        }
    }
}
