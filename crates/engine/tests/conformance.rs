//! Each adapter, against all that its ports promise.

mod memory {
    mod queue {
        use fetchwell_testkit::conformance::adapters::MemoryStore;
        fetchwell_testkit::queue_conformance!(MemoryStore::default());
    }

    mod politeness {
        use fetchwell_testkit::conformance::adapters::MemoryStore;
        fetchwell_testkit::politeness_conformance!(MemoryStore::default());
    }
}

mod sqlite {
    mod queue {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::queue_conformance!(SqliteStore::new());
        fetchwell_testkit::durable_queue_conformance!(SqliteStore::new());
    }

    mod politeness {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::politeness_conformance!(SqliteStore::new());
        fetchwell_testkit::durable_politeness_conformance!(SqliteStore::new());
    }
}
