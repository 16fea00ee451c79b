//! A byte buffer that is filled at its end and consumed from its start.

/// The initial capacity.
const FIRST_BYTES: usize = 256 * 1024;

/// It grows by doubling, up to a maximum.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    max_bytes: usize,
}

impl Buffer {
    pub(crate) fn new(max_bytes: usize) -> Buffer {
        Buffer { bytes: Vec::new(), start: 0, end: 0, max_bytes }
    }

    /// The bytes that were filled in and not consumed yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Consumes bytes from the start.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Free space after the bytes: at least `wanted_bytes`, unless the maximum leaves less.
    pub(crate) fn room(&mut self, wanted_bytes: usize) -> &mut [u8] {
        let is_short = |buffer: &Buffer| buffer.bytes.len() - buffer.end < wanted_bytes;
        if is_short(self) && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if is_short(self) {
            let larger = (self.bytes.len() * 2).max(FIRST_BYTES).max(self.end + wanted_bytes);
            let larger = larger.min(self.max_bytes).max(self.bytes.len());
            self.bytes.reserve_exact(larger - self.bytes.len());
            self.bytes.resize(larger, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Marks this many bytes of the free space as filled.
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_within_the_bound() {
        let mut buffer = Buffer::new(300_000);
        let mut put = 0_usize;
        let mut taken = 0_usize;
        for step in 0..3_000 {
            let wanted = step * 7 % 5_000;
            let room = buffer.room(wanted);
            let filled = wanted.min(room.len());
            for byte in &mut room[..filled] {
                *byte = (put % 251) as u8;
                put += 1;
            }
            buffer.filled(filled);
            assert!(buffer.bytes().len() <= 300_000);
            let used = (step * 13 % 4_000).min(buffer.bytes().len());
            for byte in &buffer.bytes()[..used] {
                assert_eq!(usize::from(*byte), taken % 251);
                taken += 1;
            }
            buffer.consume(used);
        }
        buffer.consume(usize::MAX / 2);
        assert!(buffer.bytes().is_empty());
        assert_eq!(buffer.room(400_000).len(), 300_000);
    }
}
