//! Where what the pages name is to be found: the usual ports are other ones here, and the servers are
//! those of the tests.

use std::net::{Ipv4Addr, TcpListener};

use fetchwell_testkit::conformance::servers::{
    server_url, unused_postgres_schema, unused_redis_database,
};

/// The ports that the program listens on when nothing else is said, and the settings for them.
const LISTENERS: [(&str, &str); 4] = [
    ("127.0.0.1:8080", "FETCHWELL_RETRIEVER__LISTEN"),
    ("localhost:9100", "FETCHWELL_PAGES__METRICS_LISTEN"),
    ("localhost:9000", "FETCHWELL_COMMONCRAWL__BATCH_METRICS_LISTEN"),
    ("localhost:9001", "FETCHWELL_COMMONCRAWL__WORK_METRICS_LISTEN"),
];

const REDIS: &str = "redis://localhost:6379";
const POSTGRES: &str = "postgres://fetchwell@localhost/fetchwell";
const KAFKA: &str = "localhost:9092";
const RABBITMQ: &str = "amqp://guest:guest@localhost:5672/%2f";

/// What is written in the pages, and what stands for it in this test.
pub(crate) struct Places {
    stand_ins: Vec<(&'static str, Option<String>)>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Places {
    /// Those that this page names.
    pub(crate) async fn of(page: &str) -> Places {
        let mut places = Places { stand_ins: Vec::new(), variables: Vec::new() };
        for (written, variable) in LISTENERS {
            let address = format!("127.0.0.1:{}", free_port());
            places.variables.push((variable.to_owned(), address.clone()));
            places.stand_ins.push((written, Some(address)));
        }
        for (written, variable) in [
            (REDIS, "FETCHWELL_TEST_REDIS_URL"),
            (POSTGRES, "FETCHWELL_TEST_POSTGRES_URL"),
            (KAFKA, "FETCHWELL_TEST_KAFKA_BOOTSTRAP"),
            (RABBITMQ, "FETCHWELL_TEST_RABBITMQ_URL"),
        ] {
            if !page.contains(written) {
                continue;
            }
            let server = match server_url(variable) {
                Some(url) if written == REDIS => Some(unused_redis_database(url).await),
                Some(url) if written == POSTGRES => Some(unused_postgres_schema(url).await),
                other => other,
            };
            places.stand_ins.push((written, server));
        }
        places
    }

    /// The text as it holds here; `None`: it needs a server that is not there.
    pub(crate) fn translate(&self, text: &str) -> Option<String> {
        let mut text = text.to_owned();
        for (written, stand_in) in &self.stand_ins {
            if text.contains(written) {
                text = text.replace(written, stand_in.as_ref()?);
            }
        }
        Some(text)
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it has an address").port()
}
