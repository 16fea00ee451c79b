//! Prometheus's text format.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Adds a family of samples: each with its labels, or none.
pub fn family<T: Display>(
    text: &mut String,
    name: &str,
    kind: &str,
    about: &str,
    samples: impl IntoIterator<Item = (String, T)>,
) {
    head(text, name, kind, about);
    for (labels, value) in samples {
        line(text, &format!("{name}{labels}"), value);
    }
}

/// Adds a family of one sample without labels.
pub fn single(text: &mut String, name: &str, kind: &str, about: &str, value: impl Display) {
    head(text, name, kind, about);
    line(text, name, value);
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    line(text, &format!("# HELP {name}"), about);
    line(text, &format!("# TYPE {name}"), kind);
}

fn line(text: &mut String, name: &str, value: impl Display) {
    // Writing to a string never fails.
    writeln!(text, "{name} {value}").ok();
}

/// How often values were how large.
pub struct Histogram {
    /// The upper bounds, in order.
    bounds: &'static [f64],
    /// How many values lie between a bound and the one before; the last one has no bound.
    counts: Vec<AtomicU64>,
    /// In millionths: sums of floats can't be added to atomically.
    sum_millionths: AtomicU64,
}

impl Histogram {
    /// Nothing has been seen yet.
    pub fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum_millionths: AtomicU64::new(0) }
    }

    /// A value was seen.
    pub fn observe(&self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_millionths.fetch_add((value * 1e6) as u64, Ordering::Relaxed);
    }

    /// What was seen so far.
    pub fn spread(&self) -> Spread {
        Spread {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: self.sum_millionths.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }

    /// Adds it as a family.
    pub fn render(&self, text: &mut String, name: &str, about: &str) {
        histograms(text, name, about, [(String::new(), &self.spread())]);
    }
}

/// What a histogram has seen, at one moment.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The upper bounds, in order.
    pub bounds: &'static [f64],
    /// How many values lie between a bound and the one before; the last one has no bound.
    pub counts: Vec<u64>,
    /// Of all values.
    pub sum: f64,
}

/// Adds a family of histograms: each with its labels (`door="pages"`), or none.
pub fn histograms<'a>(
    text: &mut String,
    name: &str,
    about: &str,
    spreads: impl IntoIterator<Item = (String, &'a Spread)>,
) {
    head(text, name, "histogram", about);
    for (labels, spread) in spreads {
        let mut so_far = 0;
        let comma = if labels.is_empty() { "" } else { "," };
        let bounds = spread.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&spread.counts) {
            so_far += count;
            line(text, &format!("{name}_bucket{{{labels}{comma}le=\"{bound}\"}}"), so_far);
        }
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        line(text, &format!("{name}_sum{labels}"), spread.sum);
        line(text, &format!("{name}_count{labels}"), so_far);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let histogram = Histogram::new(&[0.5, 1.0]);
        for value in [0.25, 0.5, 0.75, 7.0] {
            histogram.observe(value);
        }
        let mut text = String::new();
        histogram.render(&mut text, "x", "X.");
        let expected = "# HELP x X.\n# TYPE x histogram\nx_bucket{le=\"0.5\"} 2\n\
                        x_bucket{le=\"1\"} 3\nx_bucket{le=\"+Inf\"} 4\nx_sum 8.5\nx_count 4\n";
        assert_eq!(text, expected);
    }
}
