//! What is selected of any lines is what reading each of them would select.

#![no_main]

use fetchwell_archive::cdxj::{CdxLine, IndexFilter, Language, parse_line, sift};
use fetchwell_archive::cluster_idx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|block: &[u8]| {
    let filter = IndexFilter {
        status: Some(200),
        language: Some(Language::any("eng")),
        ..IndexFilter::default()
    };
    let mut json = Vec::new();
    let selection = sift(block, &filter, |line| line.write_json(&mut json));
    let lines = block.split_inclusive(|byte| *byte == b'\n');
    let is_wanted = |line: CdxLine<'_>| filter.rejection(&line).is_none();
    let wanted = lines.filter(|line| CdxLine::parse(line).is_ok_and(is_wanted));
    assert_eq!(selection.wanted, wanted.count() as u64);
    for line in String::from_utf8_lossy(block).lines() {
        drop((parse_line(line), cluster_idx::parse_line(line)));
    }
    assert!(cluster_idx::Lines::new(block).all(|line| line.is_ok()));
});
