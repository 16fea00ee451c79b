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

use super::addresses::{Broker, Cidr, Listen, NameServer, Resolve, Store, WebAddress};
use super::archives::{Archive, ArchiveBase, CrawlName};
use super::choices::{DocumentFormat, LOG_FORMAT, LogFormat, WHEN_UNREACHABLE, WritableFormat};
use super::combined::{ListOf, Optional};
use super::features::{KAFKA, PARQUET, RABBITMQ};
use super::key::{Key, commoncrawl, key, pages, pages_seconds};
use super::kinds::{LONG, POSITIVE, RATE, Switch, TIMEOUT, decimal, size, whole};
use super::reader::Reader;
use super::secrets::{LongSecret, SecretText};
use super::servers::{ListName, Servers, TopicName};
use super::texts::{Contact, FilePath, HeaderText};

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
        /// Where URLs, results and pace are kept: "sqlite:PATH", "postgres://…" or "redis://…".
        store: StoreUrl = Store,
            key("store", "sqlite:fetchwell.db").secret().also(pages("PAGE_FETCHER_REDIS_URL"));
        /// Where the pace of sites is kept when not in the store, in the same forms.
        /// All processes that share it share one pace.
        politeness: Option<StoreUrl> = Optional(Store), key("politeness", "").secret();
        /// The User-Agent; empty: the door's own.
        user_agent: Option<String> = Optional(HeaderText),
            key("user_agent", "").also(pages("PAGE_FETCHER_USER_AGENT"));
        /// A web or mail address for those who run the sites; it goes into the User-Agent.
        contact: String = Contact, key("contact", "https://github.com/fetchwell/fetchwell");
        /// Requests per second to each site. 0 is no pacing at all, which is refused for public
        /// addresses unless i_own_these_sites is true.
        rate: f64 = RATE,
            key("rate", "1").also(pages("PAGE_FETCHER_RATE_LIMIT_PER_SECOND"));
        /// Your word that the sites are yours, so that a rate of 0 is allowed.
        i_own_these_sites: bool = Switch, key("i_own_these_sites", "false");
        /// Requests under way at once, over all sites.
        max_in_flight: usize = whole(1, 100_000), key("max_in_flight", "128");
        /// URLs held in memory at once; all others stay in the store.
        window: usize = whole(1, 1_000_000), key("window", "8192");
        /// Where hosts are found, as PATTERN=ADDR or PATTERN=ADDR:PORT: "*.test=127.0.0.1:8099" sends every
        /// such host there.
        resolve: Vec<ResolveRule> = ListOf(Resolve), key("resolve", "");
        /// Networks that may be fetched from though they are not public, such as "10.0.0.0/8".
        allow_private: Vec<IpNet> = ListOf(Cidr), key("allow_private", "");
        /// How long a stop waits for what is in flight before it hands it back.
        shutdown_grace: Duration = LONG, key("shutdown_grace", "25s");

        /// How long opening a connection may take.
        http_connect_timeout: Duration = TIMEOUT, key("http.connect_timeout", "10s");
        /// How long a whole request may take, from the wait for its first byte to the end of its body.
        http_request_timeout: Duration = TIMEOUT, key("http.request_timeout", "30s")
            .also(pages_seconds("PAGE_FETCHER_REQUEST_TIMEOUT_SECONDS"));
        /// How long a body may pause. The wait for the first byte is limited by http.request_timeout.
        http_idle_read_timeout: Duration = TIMEOUT, key("http.idle_read_timeout", "10s");
        /// How many bytes a second a body must come at, over http.idle_read_timeout; slower is as
        /// good as a pause. 0: any.
        http_least_rate: u64 = size(0, GIB), key("http.least_rate", "100B");
        /// Redirects that are followed for one URL.
        http_max_redirects: u32 = whole(0, 20),
            key("http.max_redirects", "5").also(pages("PAGE_FETCHER_MAX_REDIRECTS"));
        /// The largest body, after decompression.
        http_max_body: u64 = size(KIB, 16 * GIB), key("http.max_body", "10MiB");
        /// How many times larger than on the wire a body may become, beyond 1 MiB.
        http_max_ratio: u32 = whole(1, 100_000), key("http.max_ratio", "100");
        /// Compressed frames (zstd) or members (gzip) that one body may consist of.
        http_max_frames: u32 = whole(1, 1_000_000), key("http.max_frames", "1000");
        /// The largest response head.
        http_max_headers: u64 = size(KIB, 16 * MIB), key("http.max_headers", "64KiB");
        /// The memory for all pages together: their bodies, what reading them takes, and what is made of them, until
        /// that is stored.
        http_body_budget: u64 = size(KIB, 1024 * GIB), key("http.body_budget", "256MiB");
        /// A PEM file of certificates to trust besides the usual ones; empty: none.
        http_extra_ca_file: Option<PathBuf> = Optional(FilePath), key("http.extra_ca_file", "");

        /// The most text that is read of one page; what follows is left out.
        extract_max_text: u64 = size(KIB, GIB), key("extract.max_text", "2MiB");
        /// The most processor time that reading one page may take; a page that takes longer fails.
        extract_max_time: Duration = TIMEOUT, key("extract.max_time", "5s");

        /// The name servers to ask, as ADDR or ADDR:PORT; empty: those of the system. No others are
        /// ever asked. /etc/hosts is read before, search domains are not put behind hosts.
        dns_servers: Vec<SocketAddr> = ListOf(NameServer), key("dns.servers", "");
        /// How long looking up a name may take; it is part of http.connect_timeout.
        dns_timeout: Duration = TIMEOUT, key("dns.timeout", "5s");

        /// When robots.txt cannot be read and no copy is left: "defer" (the URL waits), "allow"
        /// or "disallow". Where nothing is set here "pages" takes "allow".
        robots_unreachable: WhenUnreachable = WHEN_UNREACHABLE, key("robots.unreachable", "defer");
        /// How long a robots.txt is taken for fresh.
        robots_cache_ttl: Duration = LONG, key("robots.cache_ttl", "24h")
            .also(pages_seconds("PAGE_FETCHER_ROBOTS_TXT_CACHE_TTL_SECONDS"));
        /// How long an old copy serves while robots.txt cannot be read.
        robots_stale_ttl: Duration = LONG, key("robots.stale_ttl", "30d");
        /// The longest Crawl-delay that is accepted. The URLs of a site with a longer one fail.
        /// Empty: no limit, except for "fetch", whose default is 5m.
        robots_max_crawl_delay: Option<Duration> = Optional(POSITIVE),
            key("robots.max_crawl_delay", "");

        /// Failures of a site in a row that open its breaker.
        breaker_failure_threshold: u32 = whole(1, 1_000), key("breaker.failure_threshold", "5")
            .also(pages("PAGE_FETCHER_CIRCUIT_BREAKER_FAILURE_THRESHOLD"));
        /// How long a breaker is open at first.
        breaker_initial_backoff: Duration = POSITIVE, key("breaker.initial_backoff", "30s")
            .also(pages_seconds("PAGE_FETCHER_CIRCUIT_BREAKER_INITIAL_BACKOFF_SECONDS"));
        /// How long a breaker is open at most.
        breaker_max_backoff: Duration = POSITIVE, key("breaker.max_backoff", "300s")
            .also(pages_seconds("PAGE_FETCHER_CIRCUIT_BREAKER_MAX_BACKOFF_SECONDS"));
        /// Each failed probe makes the open time so many times longer.
        breaker_backoff_multiplier: f64 = decimal(1.0, 100.0),
            key("breaker.backoff_multiplier", "2")
                .also(pages("PAGE_FETCHER_CIRCUIT_BREAKER_BACKOFF_MULTIPLIER"));
        /// Open times are shortened by up to this share, so that sites don't come back all at once.
        breaker_jitter: f64 = decimal(0.0, 0.9), key("breaker.jitter", "0.2");

        /// How often an instance says that it lives.
        lease_heartbeat: Duration = POSITIVE, key("lease.heartbeat", "5s");
        /// How long after its last heartbeat an instance is taken for dead.
        lease_ttl: Duration = POSITIVE, key("lease.ttl", "20s");

        /// How long "fetch" waits for a site that stays down before its URLs fail. A longer wait that a
        /// site asks for (Retry-After, Crawl-delay) makes them fail at once.
        fetch_give_up_after: Duration = LONG, key("fetch.give_up_after", "10m");

        /// Proxies in front of a listener, as addresses or networks such as "10.0.0.0/8". Only their X-Forwarded-For,
        /// Forwarded and X-Forwarded-Proto are believed.
        api_trusted_proxies: Vec<IpNet> = ListOf(Cidr), key("api.trusted_proxies", "");
        /// Connections from one address at once, to any listener; a /64 network of IPv6 is one address. Behind a trusted
        /// proxy: requests under way for one address that it names. More get 429, health checks excepted.
        api_max_connections_per_address: usize = whole(1, 100_000),
            key("api.max_connections_per_address", "256");

        /// Where "serve" listens, as ADDR:PORT.
        retriever_listen: SocketAddr = Listen, key("retriever.listen", "127.0.0.1:8080");
        /// Another port than that of retriever.listen, unless that is set by a stronger source; empty:
        /// that one.
        retriever_api_port: Option<u16> = Optional(whole(1, 65_535)), key("retriever.api_port", "");
        /// How often "serve" looks for messages that other processes accepted.
        retriever_inbox_poll_interval: Duration = POSITIVE,
            key("retriever.inbox_poll_interval", "500ms");
        /// Messages that are fetched at once; empty: max_in_flight.
        retriever_worker_count: Option<usize> = Optional(whole(1, 100_000)),
            key("retriever.worker_count", "");
        /// Attempts at a message's page, the first one included.
        retriever_max_retries: u32 = whole(1, 100), key("retriever.max_retries", "3");
        /// How long opening a connection may take; empty: http.connect_timeout.
        retriever_connection_timeout: Option<Duration> = Optional(TIMEOUT),
            key("retriever.connection_timeout", "");
        /// How long a whole request may take; empty: http.request_timeout.
        retriever_request_timeout: Option<Duration> = Optional(TIMEOUT),
            key("retriever.request_timeout", "");
        /// Requests per second for a retailer that has no table of its own.
        retriever_default_rate_limit: f64 = decimal(0.001, 10_000.0),
            key("retriever.default_rate_limit", "10");
        /// Requests that may go at once after a pause, for such a retailer.
        retriever_default_burst_size: u32 = whole(1, 100_000),
            key("retriever.default_burst_size", "20");
        /// How long messages and their results are kept once they have ended.
        retriever_retention: Duration = POSITIVE, key("retriever.retention", "7d");
        /// How long a message is worth having that does not say so itself.
        retriever_deadline: Duration = TIMEOUT, key("retriever.deadline", "1h");
        /// Messages and questions per second of one caller; 0: any number.
        retriever_caller_rate: f64 = decimal(0.0, 1_000_000.0), key("retriever.caller_rate", "1000");
        /// How many may come at once after a pause.
        retriever_caller_burst: u32 = whole(1, 10_000_000), key("retriever.caller_burst", "5000");
        /// Connections to "serve" at once. An idle one gives way to a new one; where all are in use more get 503,
        /// health checks excepted.
        retriever_max_connections: usize = whole(1, 100_000), key("retriever.max_connections", "1024");
        /// The largest body of a batch of messages.
        retriever_max_batch_body: u64 = size(KIB, GIB), key("retriever.max_batch_body", "4MiB");
        /// Whether /metrics can be read without a token.
        retriever_public_metrics: bool = Switch, key("retriever.public_metrics", "true");

        /// Deliveries per second to each receiver of webhooks.
        webhooks_rate: f64 = decimal(0.001, 10_000.0), key("webhooks.rate", "10");

        /// The list that "pages" takes URLs from. In Redis producers RPUSH to it.
        pages_input_queue: String = ListName,
            key("pages.input_queue", "crawler_queue").also(pages("PAGE_FETCHER_INPUT_QUEUE"));
        /// The list that URLs go to which "pages" has given up.
        pages_dlq_queue: String = ListName,
            key("pages.dlq_queue", "page_fetcher_dlq").also(pages("PAGE_FETCHER_DLQ_QUEUE"));
        /// Kafka's servers, as HOST:PORT with commas between; empty: events are kept in pages.embedded.
        pages_kafka_bootstrap_servers: Option<String> = Optional(Servers(KAFKA)),
            key("pages.kafka_bootstrap_servers", "")
                .also(pages("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS"));
        /// The topic that tells of pages.
        pages_webpage_log_topic: String = TopicName,
            key("pages.webpage_log_topic", "webpage_log")
                .also(pages("PAGE_FETCHER_WEBPAGE_LOG_TOPIC"));
        /// How long Kafka may be away before /readyz of "pages" answers 503. URLs wait meanwhile, and none is lost.
        pages_unready_after: Duration = LONG, key("pages.unready_after", "30s");
        /// The Redis server that keeps pages, when it is not the store: "redis://…".
        pages_cache: Option<StoreUrl> = Optional(Store), key("pages.cache", "").secret();
        /// The SQLite file for what has no server, where the store is Redis and Kafka is not named.
        pages_embedded: PathBuf = FilePath, key("pages.embedded", "fetchwell.db");
        /// How long a page is kept.
        pages_cache_ttl: Duration = POSITIVE, key("pages.cache_ttl", "1h")
            .also(pages_seconds("PAGE_FETCHER_CACHE_TTL_SECONDS"));
        /// How long events are kept that have no Kafka.
        pages_event_retention: Duration = POSITIVE, key("pages.event_retention", "7d");
        /// Attempts at a URL that fails by itself, the first one included.
        pages_max_retries: u32 = whole(1, 100),
            key("pages.max_retries", "3").also(pages("PAGE_FETCHER_MAX_RETRIES"));
        /// How long the first retry waits at most; each one after it twice as long.
        pages_retry_backoff_base: Duration = POSITIVE, key("pages.retry_backoff_base", "2s")
            .also(pages_seconds("PAGE_FETCHER_RETRY_BACKOFF_BASE_SECONDS"));
        /// The longest pause between two looks at an empty list.
        pages_poll_timeout: Duration = POSITIVE, key("pages.poll_timeout", "5s")
            .also(pages_seconds("PAGE_FETCHER_POLL_TIMEOUT_SECONDS"));
        /// Where "pages" tells its metrics, as ADDR:PORT; empty: nowhere.
        pages_metrics_listen: Option<SocketAddr> = Optional(Listen),
            key("pages.metrics_listen", "0.0.0.0:9100");
        /// Where "pages" shows its dashboard, as ADDR:PORT; empty: nowhere. "--dashboard" is 127.0.0.1:8081.
        pages_dashboard_listen: Option<SocketAddr> = Optional(Listen),
            key("pages.dashboard_listen", "");

        /// How often "schedule" looks at what is due.
        schedule_interval: Duration = POSITIVE, key("schedule.interval", "1s");
        /// Nothing is put on a list that has so many URLs or more; 0: any number.
        schedule_max_queue: u64 = whole(0, 1_000_000_000), key("schedule.max_queue", "1000000");

        /// How often a feed is read at most that does not say so itself; 0s: at each "feeds ingest".
        feeds_interval: Duration = LONG, key("feeds.interval", "0s");
        /// How long one "feeds ingest" waits for sites that are slow, closed or have many feeds; what is
        /// left is for the next one.
        feeds_max_wait: Duration = POSITIVE, key("feeds.max_wait", "10m");
        /// An OPML file of feeds besides those of the categories below and of the store; empty: none.
        feeds_opml: Option<PathBuf> = Optional(FilePath), key("feeds.opml", "");

        /// How long a run of "articles" waits for slow and closed sites. What is left then stays for the
        /// next run.
        articles_max_wait: Duration = POSITIVE, key("articles.max_wait", "10m");
        /// How long the whole request of an article may take.
        articles_request_timeout: Duration = TIMEOUT, key("articles.request_timeout", "15s");
        /// How long "articles watch" pauses between two cycles.
        articles_watch_interval: Duration = POSITIVE, key("articles.watch_interval", "5m");
        /// Where "articles watch" tells its metrics, as ADDR:PORT; empty: nowhere.
        articles_metrics_listen: Option<SocketAddr> = Optional(Listen),
            key("articles.metrics_listen", "");

        /// The archive that "commoncrawl" reads: "https://…", "s3://BUCKET/PREFIX" or the path of a folder.
        commoncrawl_base: ArchiveBase = Archive,
            key("commoncrawl.base", "https://data.commoncrawl.org");
        /// The crawl; index.commoncrawl.org lists them.
        commoncrawl_crawl: String = CrawlName, key("commoncrawl.crawl", "CC-MAIN-2024-30");
        /// Requests to the archive under way at once.
        commoncrawl_max_concurrency: usize = whole(1, 1_000),
            key("commoncrawl.max_concurrency", "8");
        /// Stretches of one file that lie no further apart than this are asked for as one.
        commoncrawl_join_gap: u64 = size(0, GIB), key("commoncrawl.join_gap", "64KiB");
        /// The longest stretch that others are joined to.
        commoncrawl_max_range: u64 = size(KIB, GIB), key("commoncrawl.max_range", "2MiB");
        /// While so many batches wait on the queue, "commoncrawl batch" publishes no more.
        commoncrawl_max_queue: u64 = whole(1, 1_000_000_000), key("commoncrawl.max_queue", "10000");
        /// Batches that the queue may have confirmed none of yet.
        commoncrawl_max_unconfirmed: usize = whole(1, 100_000),
            key("commoncrawl.max_unconfirmed", "256");
        /// With --by-file so many pages are sorted at once; they are held in memory.
        commoncrawl_by_file_pages: usize = whole(1, 100_000_000),
            key("commoncrawl.by_file_pages", "100000");
        /// Where "commoncrawl batch" tells its metrics, as ADDR:PORT; empty: nowhere.
        commoncrawl_batch_metrics_listen: Option<SocketAddr> = Optional(Listen),
            key("commoncrawl.batch_metrics_listen", "0.0.0.0:9000");
        /// The broker whose queue batches go through: "amqp://…"; empty: they are kept in the store.
        commoncrawl_rabbitmq_url: Option<SecretUrl> = Optional(Broker(RABBITMQ)),
            key("commoncrawl.rabbitmq_url", "")
                .secret()
                .also(commoncrawl("RABBITMQ_CONNECTION_STRING"));
        /// The queue of batches. What is given up goes to the one of this name with ".dead" behind it.
        commoncrawl_queue: String = ListName, key("commoncrawl.queue", "batches");
        /// Whether a missing queue is declared so that it does not outlive its broker.
        commoncrawl_queue_transient: bool = Switch, key("commoncrawl.queue_transient", "false");
        /// Batches that a worker is given before it is done with one.
        commoncrawl_prefetch: u16 = whole(1, 10_000), key("commoncrawl.prefetch", "32");
        /// The folder that documents are written to.
        commoncrawl_output: PathBuf = FilePath, key("commoncrawl.output", "documents");
        /// What they are written as: "jsonl.zst" or "parquet".
        commoncrawl_format: DocumentFormat = WritableFormat(PARQUET), key("commoncrawl.format", "jsonl.zst");
        /// A file of documents that has grown to this is closed, and another one begun…
        commoncrawl_segment_size: u64 = size(KIB, GIB), key("commoncrawl.segment_size", "64MiB");
        /// …and so is one that is this old.
        commoncrawl_segment_age: Duration = POSITIVE, key("commoncrawl.segment_age", "60s");
        /// The largest record that is read, in bytes after inflating.
        commoncrawl_max_record: u64 = size(KIB, GIB), key("commoncrawl.max_record", "16MiB");
        /// Where "commoncrawl work" tells its metrics, as ADDR:PORT; empty: nowhere.
        commoncrawl_work_metrics_listen: Option<SocketAddr> = Optional(Listen),
            key("commoncrawl.work_metrics_listen", "0.0.0.0:9001");

        /// What opens the dashboard of "pages": 32 characters or more. Empty: one is made at each start, and
        /// printed. (That of "serve" is for its viewers and operators.)
        dashboard_token: Option<SecretText> = Optional(LongSecret), key("dashboard.token", "").secret();

        /// How log lines look: "pretty" or "json".
        log_format: LogFormat = LOG_FORMAT, key("log.format", "pretty");
    }
}

table! {
    /// What `[sites."host"]` may say.
    pub(super) Site {
        /// Requests per second to this site, such as 0.5; empty: as all others.
        rate: Option<f64> = Optional(RATE), key("rate", "");
    }
}

table! {
    /// What `[retailers.NAME]` may say. Its limit and the site's both hold.
    pub Retailer {
        /// Requests per second for this retailer, over all its sites. It is also the pace of each of its sites,
        /// in place of "rate". Empty: retriever.default_rate_limit, and sites keep their pace.
        requests_per_second: Option<f64> = Optional(decimal(0.001, 10_000.0)),
            key("requests_per_second", "");
        /// Requests that may go at once after a pause; empty: retriever.default_burst_size, and one to each site.
        burst_size: Option<u32> = Optional(whole(1, 100_000)), key("burst_size", "");
        /// How long opening a connection may take; empty: retriever.connection_timeout.
        connection_timeout: Option<Duration> = Optional(TIMEOUT), key("connection_timeout", "");
        /// How long a whole request may take; empty: retriever.request_timeout.
        request_timeout: Option<Duration> = Optional(TIMEOUT), key("request_timeout", "");
    }
}

table! {
    /// What `[categories.NAME]` may say.
    pub Category {
        /// The addresses of the feeds whose links go into this category.
        feeds: Vec<String> = ListOf(WebAddress), key("feeds", "");
        /// How often they are read; empty: feeds.interval.
        interval: Option<Duration> = Optional(POSITIVE), key("interval", "");
    }
}
