//! The keys of a queue. All but three begin with the name of its list.

/// The names that other clients know.
#[derive(Clone, Debug)]
pub struct QueueNames {
    /// The list that producers push URLs to.
    pub input: String,
    /// The list of dead letters; their details are in the hash `{dead_letters}:details`.
    pub dead_letters: String,
}

/// The keys that begin with the name of the list, in the order in which scripts use them.
const OWN: [&str; 16] = [
    "unfiled",   // ZSET of ids: moved off the list, but not filed under a site yet.
    "jobs",      // HASH of ids: the fields of each job, from the move to its end.
    "parked",    // ZSET by name: waiting jobs, by site, due time and id.
    "delayed",   // SET of ids: waiting jobs that were not due when they were added.
    "sites",     // ZSET of sites with waiting jobs: when the next of each may be taken.
    "closed",    // HASH of sites with waiting jobs: until when each is closed.
    "deadlines", // ZSET of entries of `parked`: their deadlines.
    "leased",    // ZSET of ids: the epoch that holds each.
    "instances", // ZSET of epochs: when the lease of each expires.
    "keys",      // HASH of the keys of jobs: their ids.
    "dead",      // ZSET by name: dead letters, by URL and id.
    "ledger",    // HASH of counters.
    "rounds",    // ZSET of entries of a schedule: when the last round of each was due.
    "under_way", // ZSET of leased ids that are being fetched: the epoch that holds each.
    "accepted",  // ZSET of ids that have not ended: when each was accepted.
    "size",      // STRING, an integer for any client: how many URLs wait, anywhere.
];

impl QueueNames {
    /// All keys of the queue. Every script declares all of them and builds no key names itself.
    pub(super) fn keys(&self) -> Vec<String> {
        let QueueNames { input, dead_letters } = self;
        let own = OWN.iter().map(|name| format!("{input}:{name}"));
        let dead = [dead_letters.clone(), format!("{dead_letters}:details")];
        [input.clone()].into_iter().chain(own).chain(dead).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_contract() {
        let names = QueueNames { input: "in".to_owned(), dead_letters: "dlq".to_owned() };
        let keys = names.keys();
        let list = &keys[0];
        let own = &keys[1..17];
        let dead = &keys[17..];
        assert_eq!(
            (list.as_str(), dead),
            ("in", &["dlq".to_owned(), "dlq:details".to_owned()][..])
        );
        assert!(own.iter().all(|key| key.starts_with("in:")));
        assert!(own.contains(&"in:size".to_owned()), "monitoring reads it");
    }
}
