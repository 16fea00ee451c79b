//! The geometry of charts, in a box of 900 by 200 that the page stretches.

/// The size of the box.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 200.0;
/// The space between two columns.
const GAP: f64 = 1.6;

/// A part of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The index of the part.
    pub(super) part: usize,
}

/// Stacked columns; a column of height `top` fills the box.
pub(super) fn stacked<const N: usize>(columns: &[[f64; N]], top: f64) -> Vec<Bar> {
    let step = WIDTH / columns.len().max(1) as f64;
    let mut bars = Vec::new();
    for (place, parts) in columns.iter().enumerate() {
        let mut y = HEIGHT;
        for (part, value) in parts.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let height = value / top * HEIGHT;
            y -= height;
            let x = place as f64 * step + GAP / 2.0;
            bars.push(Bar { x, y, width: (step - GAP).max(0.5), height, part });
        }
    }
    bars
}

/// A line through values, as the points of polylines, with a gap where a value is missing.
pub(super) fn line(values: &[Option<f64>], top: f64) -> Vec<String> {
    let step = WIDTH / values.len().max(1) as f64;
    let mut lines = vec![String::new()];
    for (place, value) in values.iter().enumerate() {
        match (value, lines.last_mut()) {
            (Some(value), Some(line)) => {
                let x = (place as f64 + 0.5) * step;
                let y = HEIGHT - (value / top).min(1.0) * HEIGHT;
                // A value between two gaps becomes a line of zero length, which is drawn as a dot.
                if line.is_empty() {
                    line.push_str(&format!("{x:.1},{y:.1} "));
                }
                line.push_str(&format!("{x:.1},{y:.1} "));
            }
            (None, Some(line)) if !line.is_empty() => lines.push(String::new()),
            _ => {}
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Rounds up to 1, 2 or 5 times a power of ten.
pub(super) fn round_up(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|times| times * power)
        .into_iter()
        .find(|top| *top >= most)
        .unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_the_box() {
        let bars = stacked(&[[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [2.0, 2.0, 0.0]], 4.0);
        let at: Vec<_> = bars.iter().map(|bar| (bar.part, bar.y, bar.height)).collect();
        assert_eq!(at, [(0, 150.0, 50.0), (2, 0.0, 150.0), (0, 100.0, 100.0), (1, 0.0, 100.0)]);
        assert!(bars.iter().all(|bar| bar.x >= 0.0 && bar.x + bar.width <= WIDTH));
        assert!(stacked::<2>(&[], 1.0).is_empty());
    }

    #[test]
    fn a_line_has_gaps_where_nothing_is_known() {
        let lines = line(&[Some(0.0), Some(2.0), None, None, Some(9.0)], 2.0);
        assert_eq!(lines, ["90.0,200.0 90.0,200.0 270.0,0.0 ", "810.0,0.0 810.0,0.0 "]);
        assert!(line(&[None], 1.0).is_empty() && line(&[], 1.0).is_empty());
    }

    #[test]
    fn tops_are_round() {
        for (most, top) in
            [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (23.0, 50.0), (501.0, 1_000.0)]
        {
            assert!((round_up(most) - top).abs() < 1e-9, "{most}");
        }
    }
}
