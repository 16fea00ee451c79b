//! The fastwarc crate: reads an archive up to the body of each HTTP response. Arguments: FILE.

use std::io::Read;

use fastwarc::warc::iter::ArchiveIterator;
use fastwarc::warc::record::WarcRecordType;

fn main() {
    let path = std::env::args().nth(1).expect("FILE");
    // Its fastest way: one record, changed in place, and one buffer for all bodies.
    let archive = ArchiveIterator::from_path(path).expect("the file");
    let archive = archive.with_inplace(true);
    let mut records = 0_u64;
    let mut bodies = 0_u64;
    let mut body_bytes = 0_u64;
    let mut faults = 0_u64;
    let mut body = Vec::new();
    for record in archive {
        let Ok(record) = record else {
            faults += 1;
            if faults > 9 {
                break;
            }
            continue;
        };
        let mut record = record.borrow_mut();
        records += 1;
        if record.record_type() == WarcRecordType::Response && record.is_http_parsed() {
            body.clear();
            if let Some(reader) = record.reader_mut()
                && reader.read_to_end(&mut body).is_err()
            {
                faults += 1;
            }
            bodies += 1;
            body_bytes += body.len() as u64;
        }
    }
    let faults = if faults > 0 { format!(", {faults} faults") } else { String::new() };
    println!("{records} records, {bodies} bodies, {body_bytes} bytes{faults}");
}
