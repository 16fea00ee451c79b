//! Creates metrics with the `prometheus` crate and renders them in the Prometheus text format.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::Collector;
pub use prometheus::{CounterVec, Gauge, GaugeVec, Histogram, IntCounter, IntCounterVec};
use prometheus::{HistogramOpts, Opts, TextEncoder};

/// Defines a struct of metrics. Each field has the expression that creates it, so that the name, the help text and the
/// type of a metric are in one place. `new` takes the registry; `default` creates one.
#[macro_export]
macro_rules! metric_set {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident($registry:ident) {
            $($(#[$meaning:meta])* $field:ident: $kind:ty = $made:expr,)*
        }
    ) => {
        $(#[$about])*
        $visibility struct $name { $($(#[$meaning])* $field: $kind,)* }

        impl $name {
            /// Registers all metrics.
            $visibility fn new($registry: &$crate::registry::Registry) -> $name {
                $name { $($field: $made,)* }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::new(&$crate::registry::Registry::default())
            }
        }
    };
}

/// The metrics of a part of this process. Each name is registered once; an invalid or duplicate name panics. Cheap to
/// clone.
#[derive(Clone, Default)]
pub struct Registry {
    registry: prometheus::Registry,
    /// The `# HELP` and `# TYPE` lines of each family, by its name.
    heads: Arc<Mutex<BTreeMap<String, String>>>,
    /// Labels that every metric has.
    labels: HashMap<String, String>,
}

impl Registry {
    /// The same registry; metrics created with it also have this label. A name may be registered once per value.
    pub fn labelled(&self, name: &str, value: &str) -> Registry {
        let mut labelled = self.clone();
        labelled.labels.insert(name.to_owned(), value.to_owned());
        labelled
    }

    /// A registry whose metrics are rendered without samples.
    pub fn heads_only(&self) -> Registry {
        Registry { registry: prometheus::Registry::new(), ..self.clone() }
    }

    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::with_opts(self.opts(name, help)))
    }

    /// One counter per combination of label values. The caller must keep their number small.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(self.opts(name, help), labels))
    }

    /// One counter per combination of label values, all of which exist from the start.
    pub fn counters_by<L: Labels>(&self, name: &str, help: &str) -> Counters<L> {
        let counters =
            Counters { family: self.counters(name, help, L::NAMES), labels: PhantomData };
        for labels in L::all() {
            counters.of(labels);
        }
        counters
    }

    /// Counters of seconds and other fractions.
    pub fn float_counters(&self, name: &str, help: &str, labels: &[&str]) -> CounterVec {
        self.register(CounterVec::new(self.opts(name, help), labels))
    }

    pub fn gauge(&self, name: &str, help: &str) -> Gauge {
        self.register(Gauge::with_opts(self.opts(name, help)))
    }

    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        self.register(GaugeVec::new(self.opts(name, help), labels))
    }

    /// A gauge whose value is not always known.
    pub fn optional_gauge(&self, name: &str, help: &str) -> OptionalGauge {
        OptionalGauge(self.gauges(name, help, &[]))
    }

    pub fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Histogram {
        let opts = HistogramOpts::from(self.opts(name, help)).buckets(bounds.to_vec());
        self.register(Histogram::with_opts(opts))
    }

    /// Renders all metrics for Prometheus. `refresh` updates the gauges that are computed on demand; it must not
    /// register anything. Calls of `render` do not overlap, so a text never mixes the values of two calls.
    pub fn render(&self, refresh: impl FnOnce()) -> String {
        let heads = self.heads.lock();
        refresh();
        let families = self.registry.gather();
        let mut text = String::new();
        // Writing to a string never fails, and `gather` returns no family without samples.
        TextEncoder::new().encode_utf8(&families, &mut text).ok();
        // Write their `# HELP` and `# TYPE` lines anyway, so that every metric can be found before its first event.
        for (name, head) in &*heads {
            if !families.iter().any(|family| family.name() == name) {
                text.push_str(head);
            }
        }
        text
    }

    fn opts(&self, name: &str, help: &str) -> Opts {
        Opts::new(name, help).const_labels(self.labels.clone())
    }

    fn register<M: Collector + Clone + 'static>(&self, made: prometheus::Result<M>) -> M {
        let registered = made.and_then(|metric| {
            self.registry.register(Box::new(metric.clone()))?;
            Ok(metric)
        });
        // Names are literals, so an invalid one fails in every run, including the first test.
        let metric = registered.unwrap_or_else(|error| panic!("{error}"));
        let mut heads = self.heads.lock();
        for family in metric.collect() {
            let name = family.name();
            let help = family.help();
            let kind = format!("{:?}", family.get_field_type()).to_lowercase();
            let head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
            heads.insert(name.to_owned(), head);
        }
        metric
    }
}

/// The values of one or more labels, all of which are known in advance.
pub trait Labels: Copy + Ord + 'static {
    /// The names of the labels.
    const NAMES: &'static [&'static str];

    /// All combinations.
    fn all() -> Vec<Self>;

    /// One value per name.
    fn values(self) -> Vec<&'static str>;
}

/// One counter per combination of label values. Those that were not counted yet are rendered as 0, so that the first
/// event shows as an increase.
pub struct Counters<L> {
    family: IntCounterVec,
    labels: PhantomData<L>,
}

impl<L: Labels> Counters<L> {
    pub fn inc(&self, labels: L) {
        self.of(labels).inc();
    }

    pub fn counts(&self) -> BTreeMap<L, u64> {
        L::all().into_iter().map(|labels| (labels, self.of(labels).get())).collect()
    }

    /// Creates the counter if needed, so that an event is counted even if `Labels::all` lacks its labels.
    fn of(&self, labels: L) -> IntCounter {
        self.family.with_label_values(&labels.values())
    }
}

/// A gauge without a sample while its value is unknown.
pub struct OptionalGauge(GaugeVec);

impl OptionalGauge {
    pub fn set(&self, value: Option<f64>) {
        match value {
            Some(value) => self.0.with_label_values::<&str>(&[]).set(value),
            None => self.0.reset(),
        }
    }
}

/// The counts of a family, grouped by the value of this label.
pub fn counts_by_label(family: &IntCounterVec, name: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for family in family.collect() {
        for sample in family.get_metric() {
            if let Some(label) = sample.get_label().iter().find(|label| label.name() == name) {
                let count = counts.entry(label.value().to_owned()).or_default();
                *count += sample.get_counter().get_value() as u64;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let registry = Registry::default();
        let histogram = registry.histogram("x", "X.", &[0.5, 1.0]);
        for value in [0.25, 0.5, 0.75, 7.0] {
            histogram.observe(value);
        }
        let expected = "# HELP x X.\n# TYPE x histogram\nx_bucket{le=\"0.5\"} 2\n\
                        x_bucket{le=\"1\"} 3\nx_bucket{le=\"+Inf\"} 4\nx_sum 8.5\nx_count 4\n";
        assert_eq!(registry.render(|| {}), expected);
    }

    #[test]
    fn a_name_may_be_there_once_per_label_value_and_has_one_head() {
        let registry = Registry::default();
        let counters = ["b", "a"].map(|door| registry.labelled("door", door).counter("n", "N."));
        counters[0].inc_by(3);
        let expected = "# HELP n N.\n# TYPE n counter\nn{door=\"a\"} 0\nn{door=\"b\"} 3\n";
        assert_eq!(registry.render(|| {}), expected);
    }

    #[test]
    fn a_family_without_samples_has_its_head() {
        let registry = Registry::default();
        let gauge = registry.optional_gauge("g", "G.");
        let head = "# HELP g G.\n# TYPE g gauge\n";
        assert_eq!(registry.render(|| {}), head);
        assert_eq!(registry.render(|| gauge.set(Some(1.5))), format!("{head}g 1.5\n"));
        assert_eq!(registry.render(|| gauge.set(None)), head);
    }

    #[test]
    fn counts_are_read_by_the_named_label() {
        let registry = Registry::default().labelled("door", "pages");
        let family = registry.counters("n", "N.", &["encoding", "kind"]);
        family.with_label_values(&["br", "text"]).inc_by(2);
        family.with_label_values(&["gzip", "text"]).inc_by(3);
        assert_eq!(counts_by_label(&family, "kind"), BTreeMap::from([("text".to_owned(), 5)]));
        let encodings = BTreeMap::from([("br".to_owned(), 2), ("gzip".to_owned(), 3)]);
        assert_eq!(counts_by_label(&family, "encoding"), encodings);
        assert_eq!(counts_by_label(&family, "other"), BTreeMap::new());
    }

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Light {
        Red,
        Green,
    }

    impl Labels for Light {
        const NAMES: &'static [&'static str] = &["light"];

        fn all() -> Vec<Light> {
            vec![Light::Red]
        }

        fn values(self) -> Vec<&'static str> {
            match self {
                Light::Red => vec!["red"],
                Light::Green => vec!["green"],
            }
        }
    }

    #[test]
    fn labels_that_were_not_listed_are_counted() {
        let registry = Registry::default();
        let counters = registry.counters_by::<Light>("n", "N.");
        counters.inc(Light::Green);
        let expected = "# HELP n N.\n# TYPE n counter\nn{light=\"green\"} 1\nn{light=\"red\"} 0\n";
        assert_eq!(registry.render(|| {}), expected);
    }
}
