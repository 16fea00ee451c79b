//! Sound files, damaged at random.

use proptest::prelude::*;

use super::files::{FRAMINGS, Framing, read, record};

#[derive(Clone, Debug)]
enum Damage {
    Set(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Cut(usize),
    Double(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<usize>();
    prop_oneof![
        (at, any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (at, 1_usize..300).prop_map(|(at, bytes)| Damage::Remove(at, bytes)),
        (at, prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        at.prop_map(Damage::Cut),
        (at, 1_usize..300).prop_map(|(at, bytes)| Damage::Double(at, bytes)),
    ]
}

impl Damage {
    fn apply(&self, file: &mut Vec<u8>) {
        let place = |at: usize| at % file.len().max(1);
        let stretch = |at: usize, bytes: usize| place(at)..(place(at) + bytes).min(file.len());
        match self {
            _ if file.is_empty() => {}
            Damage::Set(at, byte) => {
                let at = place(*at);
                file[at] = *byte;
            }
            Damage::Remove(at, bytes) => drop(file.drain(stretch(*at, *bytes))),
            Damage::Insert(at, bytes) => {
                let at = place(*at);
                drop(file.splice(at..at, bytes.clone()));
            }
            Damage::Cut(at) => file.truncate(place(*at)),
            Damage::Double(at, bytes) => {
                let copied = file[stretch(*at, *bytes)].to_vec();
                let at = place(*at);
                drop(file.splice(at..at, copied));
            }
        }
    }
}

fn blocks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let block = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..50),
        prop::collection::vec(any::<u8>(), 0..3_000),
        "[a-f \r\n]{0,2000}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(block, 3..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// `read` itself checks that the counts add up.
    #[test]
    fn any_damage_ends_in_counts_that_add_up(
        blocks in blocks(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let records: Vec<_> = blocks.iter().map(|block| record("response", block)).collect();
        for framing in FRAMINGS {
            let mut file = framing.file(&records);
            damages.iter().for_each(|damage| damage.apply(&mut file));
            let found = read(&file);
            prop_assert!(found.tally.items() > 0 || file.len() < 5, "{:?}", framing);
        }
    }

    #[test]
    fn damage_to_one_member_costs_no_other_record(
        blocks in blocks(),
        which in any::<usize>(),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let which = which % blocks.len();
        let mut parts: Vec<Vec<u8>> =
            blocks.iter().map(|block| Framing::Records.file(&[record("response", block)])).collect();
        damages.iter().for_each(|damage| damage.apply(&mut parts[which]));
        let found = read(&parts.concat());
        let mut sound = found.sound_blocks().into_iter();
        for (number, block) in blocks.iter().enumerate() {
            let is_there = number == which || sound.any(|found| found == block);
            prop_assert!(is_there, "{} is lost by damage to {}: {:?}", number, which, found.stretches);
        }
    }

    /// A length that is wrong and ends where the next record does is beyond any reader, so less is
    /// missing than the shortest record has.
    #[test]
    fn damage_to_one_block_of_a_plain_file_costs_no_other_record(
        blocks in blocks(),
        which in any::<usize>(),
        damage in damage(),
    ) {
        prop_assume!(!matches!(damage, Damage::Cut(_) | Damage::Remove(_, 80..)));
        let which = which % blocks.len();
        let file: Vec<u8> = (0..).zip(&blocks).flat_map(|(number, block)| {
            let mut record = record("response", block);
            if number == which {
                let mut tail = record.split_off(record.len() - block.len() - 4);
                damage.apply(&mut tail);
                // The next record begins a line.
                record.extend([&tail[..], b"\n"].concat());
            }
            record
        }).collect();
        let found = read(&file);
        let mut sound = found.sound_blocks().into_iter();
        for (number, block) in blocks.iter().enumerate() {
            let is_there = number == which || sound.any(|found| found == block);
            prop_assert!(is_there, "{} is lost by damage to {}: {:?}", number, which, found.stretches);
        }
    }

    #[test]
    fn any_bytes_end_in_counts(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
        read(&bytes);
        read(&[&[0x1f, 0x8b, 8, 0], &bytes[..]].concat());
        read(&[b"WARC/1.0\r\nContent-Length: ", &bytes[..]].concat());
    }
}
