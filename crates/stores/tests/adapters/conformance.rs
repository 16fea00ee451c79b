//! Each adapter, against all that its ports promise.

mod memory {
    mod queue {
        use fetchwell_testkit::conformance::adapters::MemoryStore;
        fetchwell_testkit::queue_conformance!(Some(MemoryStore::default()));
        fetchwell_testkit::turns_queue_conformance!(Some(MemoryStore::default()));
    }

    mod politeness {
        use fetchwell_testkit::conformance::adapters::MemoryStore;
        fetchwell_testkit::politeness_conformance!(Some(MemoryStore::default()));
        fetchwell_testkit::swept_politeness_conformance!(Some(MemoryStore::default()));
    }

    mod events {
        use fetchwell_testkit::conformance::adapters::MemoryStore;
        fetchwell_testkit::events_conformance!(Some(MemoryStore::default()));
    }
}

mod sqlite {
    mod queue {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::queue_conformance!(Some(SqliteStore::new()));
        fetchwell_testkit::turns_queue_conformance!(Some(SqliteStore::new()));
        fetchwell_testkit::durable_queue_conformance!(Some(SqliteStore::new()));
    }

    mod events {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::events_conformance!(Some(SqliteStore::new()));
    }

    mod dead_letters {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::dead_letters_conformance!(Some(SqliteStore::new()));
    }

    mod rounds {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::rounds_conformance!(Some(SqliteStore::new()));
    }

    mod links {
        use fetchwell_testkit::conformance::ageing::AgeingSqlite;
        fetchwell_testkit::links_conformance!(Some(AgeingSqlite::new()));
    }

    mod articles {
        use fetchwell_testkit::conformance::ageing::AgeingSqlite;
        fetchwell_testkit::articles_conformance!(Some(AgeingSqlite::new()));
    }

    mod feeds {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::feeds_conformance!(Some(SqliteStore::new()));
    }

    mod batches {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::batches_conformance!(Some(SqliteStore::new()));
    }

    mod inbox {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::inbox_conformance!(Some(SqliteStore::new()));
    }

    mod politeness {
        use fetchwell_testkit::conformance::adapters::SqliteStore;
        fetchwell_testkit::politeness_conformance!(Some(SqliteStore::new()));
        fetchwell_testkit::swept_politeness_conformance!(Some(SqliteStore::new()));
        fetchwell_testkit::durable_politeness_conformance!(Some(SqliteStore::new()));
    }
}

mod postgres {
    mod queue {
        use fetchwell_testkit::conformance::servers::PostgresStore;
        fetchwell_testkit::queue_conformance!(PostgresStore::if_there());
        fetchwell_testkit::turns_queue_conformance!(PostgresStore::if_there());
        fetchwell_testkit::durable_queue_conformance!(PostgresStore::if_there());
    }

    mod inbox {
        use fetchwell_testkit::conformance::servers::PostgresStore;
        fetchwell_testkit::inbox_conformance!(PostgresStore::if_there());
    }

    mod politeness {
        use fetchwell_testkit::conformance::servers::PostgresStore;
        fetchwell_testkit::politeness_conformance!(PostgresStore::if_there());
        fetchwell_testkit::swept_politeness_conformance!(PostgresStore::if_there());
        fetchwell_testkit::durable_politeness_conformance!(PostgresStore::if_there());
    }
}

mod redis {
    mod queue {
        use fetchwell_testkit::conformance::servers::RedisStore;
        fetchwell_testkit::queue_conformance!(RedisStore::if_there());
        fetchwell_testkit::durable_queue_conformance!(RedisStore::if_there());
    }

    mod dead_letters {
        use fetchwell_testkit::conformance::servers::RedisStore;
        fetchwell_testkit::dead_letters_conformance!(RedisStore::if_there());
    }

    mod rounds {
        use fetchwell_testkit::conformance::servers::RedisStore;
        fetchwell_testkit::rounds_conformance!(RedisStore::if_there());
    }

    mod links {
        use fetchwell_testkit::conformance::ageing::AgeingRedis;
        fetchwell_testkit::links_conformance!(AgeingRedis::if_there());
    }

    mod articles {
        use fetchwell_testkit::conformance::ageing::AgeingRedis;
        fetchwell_testkit::articles_conformance!(AgeingRedis::if_there());
    }

    mod feeds {
        use fetchwell_testkit::conformance::servers::RedisStore;
        fetchwell_testkit::feeds_conformance!(RedisStore::if_there());
    }

    mod politeness {
        use fetchwell_testkit::conformance::servers::RedisStore;
        fetchwell_testkit::politeness_conformance!(RedisStore::if_there());
        fetchwell_testkit::durable_politeness_conformance!(RedisStore::if_there());
    }
}

mod kafka {
    mod events {
        use fetchwell_testkit::conformance::kafka::KafkaStore;
        fetchwell_testkit::events_conformance!(KafkaStore::if_there());
    }
}

mod rabbitmq {
    mod batches {
        use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
        fetchwell_testkit::batches_conformance!(RabbitStore::if_there());
    }
}
