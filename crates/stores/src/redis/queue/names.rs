//! The keys of a queue. All but three begin with the name of its list.

/// The names that the outside world knows.
#[derive(Clone, Debug)]
pub struct QueueNames {
    /// The list that producers push URLs to.
    pub input: String,
    /// The list of dead letters; their details are in the hash `{dead_letters}:details`.
    pub dead_letters: String,
}

/// What stands under the keys that begin with the list's name, in the order in which scripts know them.
const OWN: [&str; 16] = [
    "unfiled",   // ZSET of ids: moved off the list, not under a site yet.
    "jobs",      // HASH of ids: what is known of each job, from the move to its end.
    "parked",    // ZSET by name: what waits, by site, due time and id.
    "delayed",   // SET of ids: those that wait and were not due when they were put there.
    "sites",     // ZSET of sites with something waiting: when each gives next.
    "closed",    // HASH of sites with something waiting: until when each gives nothing.
    "deadlines", // ZSET of places in `parked`: when nobody waits for them any more.
    "leased",    // ZSET of ids: the epoch that holds each.
    "instances", // ZSET of epochs: until when each lives.
    "keys",      // HASH of the keys of jobs: their ids.
    "dead",      // ZSET by name: dead letters, by URL and id.
    "ledger",    // HASH of counters.
    "rounds",    // ZSET of what a schedule puts on the list: when its last round was due.
    "under_way", // ZSET of ids that are leased and being fetched: the epoch that holds each.
    "accepted",  // ZSET of ids that have not ended: when each was accepted.
    "size",      // STRING, an integer that anybody may read: how many URLs wait, anywhere.
];

impl QueueNames {
    /// All keys of the queue: every script names all of them, so that none is made up in a script.
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
