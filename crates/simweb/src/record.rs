use std::io::{self, BufRead, Write};

use crate::hit::Hit;

/// Writes one line of JSON per hit.
pub fn write_hits(out: &mut impl Write, hits: &[Hit]) -> io::Result<()> {
    for hit in hits {
        serde_json::to_writer(&mut *out, hit)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads what [`write_hits`] wrote.
///
/// A last line without a line feed is left out: its writer was killed while writing it.
pub fn read_hits(mut from: impl BufRead) -> io::Result<Vec<Hit>> {
    let mut hits = Vec::new();
    let mut line = String::new();
    while from.read_line(&mut line)? > 0 && line.ends_with('\n') {
        hits.push(serde_json::from_str(&line)?);
        line.clear();
    }
    Ok(hits)
}
