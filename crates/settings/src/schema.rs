//! The table: every setting there is, its type, what it may be, its default, what it is for.
//!
//! All else follows from it: the fields that the program reads, the default file, `config show`
//! and `config check`. A row's comment is also its text in the default file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fetchwell_engine::ports::store_url::{SecretUrl, StoreUrl};
use fetchwell_policy::address::ResolveRule;
use fetchwell_policy::robots::WhenUnreachable;
use ipnet::IpNet;

use super::addresses::{
    BROKER, CIDR, LISTEN, NAME_SERVER, PUBLIC_URL, RESOLVE, STORE, WEB_ADDRESS,
};
use super::archives::{ARCHIVE, ArchiveBase, CRAWL_NAME};
use super::choices::{DocumentFormat, LOG_FORMAT, LogFormat, WHEN_UNREACHABLE, WritableFormat};
use super::combined::{ListOf, Needs, Optional};
use super::features::{KAFKA, PARQUET, RABBITMQ};
use super::key::{Key, commoncrawl, key, pages, pages_seconds};
use super::kinds::{LONG, POSITIVE, RATE, SWITCH, TIMEOUT, decimal, size, whole};
use super::reader::Reader;
use super::secrets::{LONG_SECRET, SecretText};
use super::servers::{LIST_NAME, SERVERS, TOPIC_NAME};
use super::texts::{CONTACT, FILE_PATH, HEADER_TEXT, HOST_NAME};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $visible:vis $table:ident {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $kind:expr, $key:expr;)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $visible struct $table {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $table {
            pub(super) const KEYS: &'static [Key] = &[$($key.docs(&[$($doc),+])),+];

            /// Reads every row, so that every fault is found; none when a row has no good value.
            pub(super) fn read(reader: &mut Reader<'_>) -> Option<$table> {
                $(let $field = reader.take(&$key, &$kind);)+
                Some($table { $($field: $field?),+ })
            }
        }
    };
}

table! {
    /// Every setting but those of single sites, retailers and categories.
    pub Values {
        /// Where URLs, results and the pace of sites are stored: "sqlite:PATH", "postgres://…" or
        /// "redis://…".
        store: StoreUrl = STORE,
            key("store", "sqlite:fetchwell.db").secret().also(pages("PAGE_FETCHER_REDIS_URL"));
        /// Where the pace of sites is stored, if not in the store. Takes the same forms. All
        /// processes that use it share one pace.
        politeness: Option<StoreUrl> = Optional(STORE), key("politeness", "").secret();
        /// The User-Agent. Empty: the default of the command.
        user_agent: Option<String> = Optional(HEADER_TEXT),
            key("user_agent", "").also(pages("PAGE_FETCHER_USER_AGENT"));
        /// A web or mail address at which site owners can reach you. It becomes part of the
        /// User-Agent.
        contact: String = CONTACT, key("contact", "https://github.com/fetchwell/fetchwell");
        /// Requests per second per site. 0 disables pacing, which is refused for public addresses
        /// unless i_own_these_sites is true.
        rate: f64 = RATE,
            key("rate", "1").also(pages("PAGE_FETCHER_RATE_LIMIT_PER_SECOND"));
        /// Confirms that you own the sites, so that a rate of 0 is allowed for public addresses.
        i_own_these_sites: bool = SWITCH, key("i_own_these_sites", "false");
        /// The maximum number of concurrent requests, across all sites.
        max_in_flight: usize = whole(1, 100_000), key("max_in_flight", "128");
        /// The maximum number of URLs held in memory. All others stay in the store.
        window: usize = whole(1, 1_000_000), key("window", "8192");
        /// Fixed addresses for hosts, as PATTERN=ADDR or PATTERN=ADDR:PORT. "*.test=127.0.0.1:8099"
        /// sends every such host there.
        resolve: Vec<ResolveRule> = ListOf(RESOLVE), key("resolve", "");
        /// Non-public networks that may be fetched from, such as "10.0.0.0/8".
        allow_private: Vec<IpNet> = ListOf(CIDR), key("allow_private", "");
        /// How long a shutdown waits for requests in flight before it hands them back.
        shutdown_grace: Duration = LONG, key("shutdown_grace", "25s");

        /// The time limit for opening a connection.
        http_connect_timeout: Duration = TIMEOUT, key("http.connect_timeout", "10s");
        /// The time limit for a whole request, from the wait for the first byte to the end of the
        /// body.
        http_request_timeout: Duration = TIMEOUT, key("http.request_timeout", "30s")
            .also(pages_seconds("PAGE_FETCHER_REQUEST_TIMEOUT_SECONDS"));
        /// The longest pause within a body. The wait for the first byte is limited by
        /// http.request_timeout.
        http_idle_read_timeout: Duration = TIMEOUT, key("http.idle_read_timeout", "10s");
        /// The minimum rate of a body in bytes per second, measured over http.idle_read_timeout. A
        /// slower body counts as stalled. 0: no minimum.
        http_least_rate: u64 = size(0, GIB), key("http.least_rate", "100B");
        /// The maximum number of redirects followed for one URL.
        http_max_redirects: u32 = whole(0, 20),
            key("http.max_redirects", "5").also(pages("PAGE_FETCHER_MAX_REDIRECTS"));
        /// The maximum size of a body, after decompression.
        http_max_body: u64 = size(KIB, 16 * GIB), key("http.max_body", "10MiB");
        /// The maximum compression ratio of a body, beyond 1 MiB.
        http_max_ratio: u32 = whole(1, 100_000), key("http.max_ratio", "100");
        /// The maximum number of compressed frames (zstd) or members (gzip) in one body.
        http_max_frames: u32 = whole(1, 1_000_000), key("http.max_frames", "1000");
        /// The maximum size of a response head.
        http_max_headers: u64 = size(KIB, 16 * MIB), key("http.max_headers", "64KiB");
        /// The memory limit for all pages together: their bodies, the memory to parse them, and the
        /// results until they are stored.
        http_body_budget: u64 = size(KIB, 1024 * GIB), key("http.body_budget", "256MiB");
        /// A PEM file of certificates to trust in addition to the usual ones. Empty: none.
        http_extra_ca_file: Option<PathBuf> = Optional(FILE_PATH), key("http.extra_ca_file", "");

        /// The maximum amount of text read from one page. The rest is left out.
        extract_max_text: u64 = size(KIB, GIB), key("extract.max_text", "2MiB");
        /// The maximum CPU time for reading one page. A page that takes longer fails.
        extract_max_time: Duration = TIMEOUT, key("extract.max_time", "5s");

        /// The name servers to use, as ADDR or ADDR:PORT. Empty: those of the system. No others are
        /// ever queried. /etc/hosts is read first; search domains are not appended.
        dns_servers: Vec<SocketAddr> = ListOf(NAME_SERVER), key("dns.servers", "");
        /// The time limit for a DNS lookup. It is part of http.connect_timeout.
        dns_timeout: Duration = TIMEOUT, key("dns.timeout", "5s");

        /// What to do if robots.txt is unreachable and there is no cached copy: "defer" (the URL
        /// waits), "allow" or "disallow". If this is not set, "pages" uses "allow".
        robots_unreachable: WhenUnreachable = WHEN_UNREACHABLE, key("robots.unreachable", "defer");
        /// How long a robots.txt is considered fresh.
        robots_cache_ttl: Duration = LONG, key("robots.cache_ttl", "24h")
            .also(pages_seconds("PAGE_FETCHER_ROBOTS_TXT_CACHE_TTL_SECONDS"));
        /// How long an old copy is used while robots.txt is unreachable.
        robots_stale_ttl: Duration = LONG, key("robots.stale_ttl", "30d");
        /// The longest Crawl-delay that is accepted. The URLs of a site with a longer one fail.
        /// Empty: no limit, except for "fetch", whose default is 5m.
        robots_max_crawl_delay: Option<Duration> = Optional(POSITIVE),
            key("robots.max_crawl_delay", "");

        /// The number of consecutive failures of a site that open its breaker.
        breaker_failure_threshold: u32 = whole(1, 1_000), key("breaker.failure_threshold", "5")
            .also(pages("PAGE_FETCHER_CIRCUIT_BREAKER_FAILURE_THRESHOLD"));
        /// How long a breaker stays open at first.
        breaker_initial_backoff: Duration = POSITIVE, key("breaker.initial_backoff", "30s")
            .also(pages_seconds("PAGE_FETCHER_CIRCUIT_BREAKER_INITIAL_BACKOFF_SECONDS"));
        /// The longest time that a breaker stays open.
        breaker_max_backoff: Duration = POSITIVE, key("breaker.max_backoff", "300s")
            .also(pages_seconds("PAGE_FETCHER_CIRCUIT_BREAKER_MAX_BACKOFF_SECONDS"));
        /// The factor by which each failed probe lengthens the open time.
        breaker_backoff_multiplier: f64 = decimal(1.0, 100.0),
            key("breaker.backoff_multiplier", "2")
                .also(pages("PAGE_FETCHER_CIRCUIT_BREAKER_BACKOFF_MULTIPLIER"));
        /// Open times are shortened by a random share up to this value, so that sites are not
        /// probed all at once.
        breaker_jitter: f64 = decimal(0.0, 0.9), key("breaker.jitter", "0.2");

        /// The interval between heartbeats of an instance.
        lease_heartbeat: Duration = POSITIVE, key("lease.heartbeat", "5s");
        /// How long after its last heartbeat an instance is considered dead.
        lease_ttl: Duration = POSITIVE, key("lease.ttl", "20s");

        /// How long "fetch" waits for a site that stays down before its URLs fail. If a site asks
        /// for a longer wait (Retry-After, Crawl-delay), its URLs fail at once.
        fetch_give_up_after: Duration = LONG, key("fetch.give_up_after", "10m");

        /// Proxies in front of a listener, as addresses or networks such as "10.0.0.0/8".
        /// X-Forwarded-For, Forwarded and X-Forwarded-Proto are trusted only from these.
        api_trusted_proxies: Vec<IpNet> = ListOf(CIDR), key("api.trusted_proxies", "");
        /// The maximum number of connections from one address, to any listener. An IPv6 /64 network
        /// counts as one address. Behind a trusted proxy: concurrent requests from one client
        /// address. More get 429, except for health checks.
        api_max_connections_per_address: usize = whole(1, 100_000),
            key("api.max_connections_per_address", "256");

        /// The listen address of "serve", as ADDR:PORT.
        retriever_listen: SocketAddr = LISTEN, key("retriever.listen", "127.0.0.1:8080");
        /// Replaces the port of retriever.listen, unless retriever.listen comes from a source with
        /// higher precedence. Empty: the port of retriever.listen.
        retriever_api_port: Option<u16> = Optional(whole(1, 65_535)), key("retriever.api_port", "");
        /// How often "serve" checks for messages that other processes accepted.
        retriever_inbox_poll_interval: Duration = POSITIVE,
            key("retriever.inbox_poll_interval", "500ms");
        /// The maximum number of messages fetched concurrently. Empty: max_in_flight.
        retriever_worker_count: Option<usize> = Optional(whole(1, 100_000)),
            key("retriever.worker_count", "");
        /// The maximum number of attempts for a message, including the first.
        retriever_max_retries: u32 = whole(1, 100), key("retriever.max_retries", "3");
        /// The time limit for opening a connection. Empty: http.connect_timeout.
        retriever_connection_timeout: Option<Duration> = Optional(TIMEOUT),
            key("retriever.connection_timeout", "");
        /// The time limit for a whole request. Empty: http.request_timeout.
        retriever_request_timeout: Option<Duration> = Optional(TIMEOUT),
            key("retriever.request_timeout", "");
        /// Requests per second for a retailer without its own table.
        retriever_default_rate_limit: f64 = decimal(0.001, 10_000.0),
            key("retriever.default_rate_limit", "10");
        /// The burst size for a retailer without its own table: requests allowed at once after a
        /// pause.
        retriever_default_burst_size: u32 = whole(1, 100_000),
            key("retriever.default_burst_size", "20");
        /// How long messages and their results are kept after they ended.
        retriever_retention: Duration = POSITIVE, key("retriever.retention", "7d");
        /// The maximum size of a response body that is kept for GET /messages/{id}/body. 0: only bodies
        /// that are equal to the content of their results are available.
        retriever_body_max_size: u64 = size(0, 512 * MIB), key("retriever.body_max_size", "10MiB");
        /// How long bodies are kept, at most as long as their results. A body that is equal to the
        /// content of its result is kept as long as the result.
        retriever_body_retention: Duration = POSITIVE, key("retriever.body_retention", "24h");
        /// The maximum total size of the bodies of one caller. The oldest ones are deleted to make
        /// room. Bodies that are equal to the content of their results do not count.
        retriever_body_quota: u64 = size(0, 1024 * GIB), key("retriever.body_quota", "1GiB");
        /// The deadline of a message that does not set its own.
        retriever_deadline: Duration = TIMEOUT, key("retriever.deadline", "1h");
        /// The maximum number of messages and queries per second per caller. 0: no limit.
        retriever_caller_rate: f64 = decimal(0.0, 1_000_000.0), key("retriever.caller_rate", "1000");
        /// The number of messages and queries that a caller may send at once after a pause.
        retriever_caller_burst: u32 = whole(1, 10_000_000), key("retriever.caller_burst", "10000");
        /// The maximum number of connections to "serve". A new connection replaces an idle one. If
        /// all are in use, more get 503, except for health checks.
        retriever_max_connections: usize = whole(1, 100_000), key("retriever.max_connections", "1024");
        /// The maximum body size of a batch of messages.
        retriever_max_batch_body: u64 = size(KIB, GIB), key("retriever.max_batch_body", "16MiB");
        /// The maximum number of pages per crawl (`POST /crawl`).
        retriever_max_crawl_pages: u64 = whole(1, 1_000_000_000), key("retriever.max_crawl_pages", "100000");
        /// The maximum number of unfinished crawls per caller.
        retriever_max_crawls: u32 = whole(1, 256), key("retriever.max_crawls", "5");
        /// The URL at which clients reach "serve", with its scheme. Links in responses begin with it.
        /// Empty: the host of the request is used.
        retriever_public_url: Option<String> = Optional(PUBLIC_URL), key("retriever.public_url", "");
        /// Whether /metrics can be read without a token.
        retriever_public_metrics: bool = SWITCH, key("retriever.public_metrics", "true");

        /// The hostnames by which clients reach /mcp of "serve", such as "fetch.example.com". IP
        /// addresses, "localhost" and the host of retriever.public_url are always accepted. All other
        /// names are refused, to protect the server against DNS rebinding.
        mcp_allowed_hosts: Vec<String> = ListOf(HOST_NAME), key("mcp.allowed_hosts", "");

        /// Deliveries per second per webhook receiver.
        webhooks_rate: f64 = decimal(0.001, 10_000.0), key("webhooks.rate", "10");

        /// The list from which "pages" takes URLs. In Redis, producers RPUSH to it.
        pages_input_queue: String = LIST_NAME,
            key("pages.input_queue", "crawler_queue").also(pages("PAGE_FETCHER_INPUT_QUEUE"));
        /// The list for URLs that "pages" gave up (dead letters).
        pages_dlq_queue: String = LIST_NAME,
            key("pages.dlq_queue", "page_fetcher_dlq").also(pages("PAGE_FETCHER_DLQ_QUEUE"));
        /// The Kafka servers, as a comma-separated list of HOST:PORT. Empty: events are kept in
        /// pages.embedded.
        pages_kafka_bootstrap_servers: Option<String> = Optional(Needs(KAFKA, SERVERS)),
            key("pages.kafka_bootstrap_servers", "")
                .also(pages("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS"));
        /// The Kafka topic for events about fetched pages.
        pages_webpage_log_topic: String = TOPIC_NAME,
            key("pages.webpage_log_topic", "webpage_log")
                .also(pages("PAGE_FETCHER_WEBPAGE_LOG_TOPIC"));
        /// How long Kafka may be unavailable before /readyz of "pages" answers 503. URLs wait
        /// meanwhile, and none is lost.
        pages_unready_after: Duration = LONG, key("pages.unready_after", "30s");
        /// The Redis server for pages, if it is not the store: "redis://…".
        pages_cache: Option<StoreUrl> = Optional(STORE), key("pages.cache", "").secret();
        /// The SQLite file for events if the store is Redis and no Kafka is named.
        pages_embedded: PathBuf = FILE_PATH, key("pages.embedded", "fetchwell.db");
        /// How long a page is kept.
        pages_cache_ttl: Duration = POSITIVE, key("pages.cache_ttl", "1h")
            .also(pages_seconds("PAGE_FETCHER_CACHE_TTL_SECONDS"));
        /// How long events are kept if there is no Kafka.
        pages_event_retention: Duration = POSITIVE, key("pages.event_retention", "7d");
        /// The maximum number of attempts for a URL that fails itself, including the first.
        pages_max_retries: u32 = whole(1, 100),
            key("pages.max_retries", "3").also(pages("PAGE_FETCHER_MAX_RETRIES"));
        /// The maximum delay of the first retry. It doubles with each further retry.
        pages_retry_backoff_base: Duration = POSITIVE, key("pages.retry_backoff_base", "2s")
            .also(pages_seconds("PAGE_FETCHER_RETRY_BACKOFF_BASE_SECONDS"));
        /// The longest pause between two polls of an empty list.
        pages_poll_timeout: Duration = POSITIVE, key("pages.poll_timeout", "5s")
            .also(pages_seconds("PAGE_FETCHER_POLL_TIMEOUT_SECONDS"));
        /// The listen address for the metrics of "pages", as ADDR:PORT. Empty: disabled.
        pages_metrics_listen: Option<SocketAddr> = Optional(LISTEN),
            key("pages.metrics_listen", "0.0.0.0:9100");
        /// The listen address for the dashboard of "pages", as ADDR:PORT. Empty: disabled.
        /// "--dashboard" sets 127.0.0.1:8081.
        pages_dashboard_listen: Option<SocketAddr> = Optional(LISTEN),
            key("pages.dashboard_listen", "");

        /// How often "schedule" checks what is due.
        schedule_interval: Duration = POSITIVE, key("schedule.interval", "1s");
        /// Nothing is added to a list that has this many URLs or more. 0: no limit.
        schedule_max_queue: u64 = whole(0, 1_000_000_000), key("schedule.max_queue", "1000000");

        /// The minimum interval between reads of a feed that does not set its own. 0s: read at each
        /// "feeds ingest".
        feeds_interval: Duration = LONG, key("feeds.interval", "0s");
        /// How long one "feeds ingest" waits for sites that are slow, closed or have many feeds.
        /// The remaining feeds are read by the next one.
        feeds_max_wait: Duration = POSITIVE, key("feeds.max_wait", "10m");
        /// An OPML file of feeds, in addition to those of the categories below and of the store.
        /// Empty: none.
        feeds_opml: Option<PathBuf> = Optional(FILE_PATH), key("feeds.opml", "");

        /// How long a run of "articles" waits for slow and closed sites. The remaining links are
        /// left for the next run.
        articles_max_wait: Duration = POSITIVE, key("articles.max_wait", "10m");
        /// The time limit for the whole request of an article.
        articles_request_timeout: Duration = TIMEOUT, key("articles.request_timeout", "15s");
        /// The pause between two cycles of "articles watch".
        articles_watch_interval: Duration = POSITIVE, key("articles.watch_interval", "5m");
        /// The listen address for the metrics of "articles watch", as ADDR:PORT. Empty: disabled.
        articles_metrics_listen: Option<SocketAddr> = Optional(LISTEN),
            key("articles.metrics_listen", "");

        /// The archive that "commoncrawl" reads: "https://…", "s3://BUCKET/PREFIX" or the path of a
        /// folder.
        commoncrawl_base: ArchiveBase = ARCHIVE,
            key("commoncrawl.base", "https://data.commoncrawl.org");
        /// The crawl. index.commoncrawl.org lists all crawls.
        commoncrawl_crawl: String = CRAWL_NAME, key("commoncrawl.crawl", "CC-MAIN-2024-30");
        /// The maximum number of concurrent requests to the archive.
        commoncrawl_max_concurrency: usize = whole(1, 1_000),
            key("commoncrawl.max_concurrency", "8");
        /// Ranges of one file that are no further apart than this are requested as one.
        commoncrawl_join_gap: u64 = size(0, GIB), key("commoncrawl.join_gap", "64KiB");
        /// The maximum length of a range that results from joining others.
        commoncrawl_max_range: u64 = size(KIB, GIB), key("commoncrawl.max_range", "2MiB");
        /// While this many batches wait on the queue, "commoncrawl batch" publishes no more.
        commoncrawl_max_queue: u64 = whole(1, 1_000_000_000), key("commoncrawl.max_queue", "10000");
        /// The maximum number of published batches that the queue has not confirmed yet.
        commoncrawl_max_unconfirmed: usize = whole(1, 100_000),
            key("commoncrawl.max_unconfirmed", "256");
        /// The number of pages that --by-file sorts at once. They are held in memory.
        commoncrawl_by_file_pages: usize = whole(1, 100_000_000),
            key("commoncrawl.by_file_pages", "100000");
        /// The listen address for the metrics of "commoncrawl batch", as ADDR:PORT. Empty:
        /// disabled.
        commoncrawl_batch_metrics_listen: Option<SocketAddr> = Optional(LISTEN),
            key("commoncrawl.batch_metrics_listen", "0.0.0.0:9000");
        /// The RabbitMQ broker for batches: "amqp://…". Empty: batches are kept in the store.
        commoncrawl_rabbitmq_url: Option<SecretUrl> = Optional(Needs(RABBITMQ, BROKER)),
            key("commoncrawl.rabbitmq_url", "")
                .secret()
                .also(commoncrawl("RABBITMQ_CONNECTION_STRING"));
        /// The queue of batches. Batches that are given up go to the queue of the same name with
        /// ".dead" appended.
        commoncrawl_queue: String = LIST_NAME, key("commoncrawl.queue", "batches");
        /// Whether a missing queue is declared transient, so that it does not survive a restart of
        /// the broker.
        commoncrawl_queue_transient: bool = SWITCH, key("commoncrawl.queue_transient", "false");
        /// The number of unacknowledged batches that a worker may hold.
        commoncrawl_prefetch: u16 = whole(1, 10_000), key("commoncrawl.prefetch", "32");
        /// The folder for documents.
        commoncrawl_output: PathBuf = FILE_PATH, key("commoncrawl.output", "documents");
        /// The file format of documents: "jsonl.zst" or "parquet".
        commoncrawl_format: DocumentFormat = WritableFormat(PARQUET), key("commoncrawl.format", "jsonl.zst");
        /// A document file is closed when it reaches this size, and the next one is started.
        commoncrawl_segment_size: u64 = size(KIB, GIB), key("commoncrawl.segment_size", "64MiB");
        /// A document file is closed when it reaches this age, and the next one is started.
        commoncrawl_segment_age: Duration = POSITIVE, key("commoncrawl.segment_age", "60s");
        /// The maximum size of a record, in bytes after decompression.
        commoncrawl_max_record: u64 = size(KIB, GIB), key("commoncrawl.max_record", "16MiB");
        /// The listen address for the metrics of "commoncrawl work", as ADDR:PORT. Empty: disabled.
        commoncrawl_work_metrics_listen: Option<SocketAddr> = Optional(LISTEN),
            key("commoncrawl.work_metrics_listen", "0.0.0.0:9001");

        /// The token for the dashboard of "pages", at least 32 characters. Empty: each start
        /// generates one and prints it. (The dashboard of "serve" uses the tokens of viewers and
        /// operators.)
        dashboard_token: Option<SecretText> = Optional(LONG_SECRET), key("dashboard.token", "").secret();

        /// The format of log lines: "pretty" or "json".
        log_format: LogFormat = LOG_FORMAT, key("log.format", "pretty");
    }
}

table! {
    /// What `[sites."host"]` may say.
    pub(super) Site {
        /// Requests per second to this site, such as 0.5. Empty: the global rate.
        rate: Option<f64> = Optional(RATE), key("rate", "");
    }
}

table! {
    /// What `[retailers.NAME]` may say. Its limit and the site's both hold.
    pub Retailer {
        /// Requests per second for this retailer, across all its sites. It is also the pace of each
        /// of its sites, in place of "rate". Empty: retriever.default_rate_limit, and sites keep
        /// their pace.
        requests_per_second: Option<f64> = Optional(decimal(0.001, 10_000.0)),
            key("requests_per_second", "");
        /// The number of requests allowed at once after a pause. Empty:
        /// retriever.default_burst_size, and one per site.
        burst_size: Option<u32> = Optional(whole(1, 100_000)), key("burst_size", "");
        /// The time limit for opening a connection. Empty: retriever.connection_timeout.
        connection_timeout: Option<Duration> = Optional(TIMEOUT), key("connection_timeout", "");
        /// The time limit for a whole request. Empty: retriever.request_timeout.
        request_timeout: Option<Duration> = Optional(TIMEOUT), key("request_timeout", "");
    }
}

table! {
    /// What `[categories.NAME]` may say.
    pub Category {
        /// The URLs of the feeds whose links go into this category.
        feeds: Vec<String> = ListOf(WEB_ADDRESS), key("feeds", "");
        /// The interval between reads. Empty: feeds.interval.
        interval: Option<Duration> = Optional(POSITIVE), key("interval", "");
    }
}
