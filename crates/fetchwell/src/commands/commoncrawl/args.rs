//! The arguments of `fetchwell commoncrawl`, and the rules of its doors.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fetchwell_archive::cdxj::{IndexFilter, Language, LanguagePlace};
use fetchwell_commoncrawl::ReadTime;
use fetchwell_commoncrawl::archive::JoinRule;
use fetchwell_commoncrawl::batch::BatchRules;
use fetchwell_commoncrawl::batch::block::Batching;
use fetchwell_commoncrawl::work::{
    DocumentFilter, LASTING_KINDS, OutputTarget, PASSING_KINDS, SegmentFormat, SegmentRule,
    WorkRules,
};
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::units::parse_size;
use fetchwell_settings::{DocumentFormat, Flag, Values};

use crate::commands::args::{given, output_format, whole};
use crate::console::exit::Exit;

/// The value that disables a filter.
const ANY: &str = "any";

#[derive(Debug, Subcommand)]
pub(crate) enum CommonCrawlCommand {
    /// Find the captures of a page, a folder or a domain in the index
    Find(FindArgs),
    /// Print a captured page
    Get(GetArgs),
    /// Group the pages of an index into batches, and put them on the queue
    Batch(BatchArgs),
    /// Take batches from the queue, and write the text of their pages
    Work(WorkArgs),
    /// List or retry the batches that workers gave up on
    Dead {
        #[command(subcommand)]
        command: DeadCommand,
    },
    /// Republish the pages in errors.jsonl that might succeed on another attempt
    RetryErrors(RetryErrorsArgs),
}

/// `fetchwell commoncrawl dead`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List dead batches, with the reason for each
    List(QueueArgs),
    /// Put dead batches back on the queue with a fresh attempt count
    Retry(DeadRetryArgs),
}

/// `fetchwell commoncrawl dead retry`.
#[derive(Debug, Args)]
pub(crate) struct DeadRetryArgs {
    /// Batches, by the names that "list" shows
    #[arg(value_name = "BATCH", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) batches: Vec<String>,
    /// Every dead batch
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    queue: QueueArgs,
}

/// `fetchwell commoncrawl retry-errors`.
#[derive(Debug, Args)]
pub(crate) struct RetryErrorsArgs {
    #[command(flatten)]
    queue: QueueArgs,
    /// Folder with the errors.jsonl to read [default: documents]
    #[arg(long, value_name = "DIR")]
    output: Option<String>,
    /// Only errors of these kinds; repeat or separate with commas [default: kinds that another attempt might fix]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = error_kind())]
    pub(crate) kind: Vec<String>,
    /// Pages per batch
    #[arg(long, value_name = "N", default_value = "50", value_parser = whole(1, 10_000))]
    pub(crate) batch_size: usize,
}

/// The archive to use.
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// The archive: a URL, the path of a folder, or s3://BUCKET [default: data.commoncrawl.org]
    #[arg(long, value_name = "URL|DIR|s3://…")]
    base: Option<String>,
}

/// The archive and the crawl to use.
#[derive(Debug, Args)]
pub(crate) struct CrawlArgs {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// The crawl; index.commoncrawl.org lists them [default: CC-MAIN-2024-30]
    #[arg(long, value_name = "NAME")]
    crawl: Option<String>,
}

/// The queue of batches.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Declare a missing queue as transient: it does not survive a restart of the broker
    #[arg(long)]
    queue_transient: bool,
}

/// `fetchwell commoncrawl find`.
#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    /// URL; example.com/docs/* matches everything below it, *.example.com a domain and all its subdomains
    pub(crate) pattern: String,
    #[command(flatten)]
    crawl: CrawlArgs,
    /// Maximum number of captures to print
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole(1, 1_000_000))]
    pub(crate) limit: usize,
}

/// `fetchwell commoncrawl get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The URL
    pub(crate) url: String,
    #[command(flatten)]
    crawl: CrawlArgs,
    /// Time of the capture, YYYYMMDDhhmmss or a prefix of it [default: the newest one with status 200]
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub(crate) timestamp: Option<String>,
    /// Output format; --json is --format json
    #[arg(long, value_parser = output_format(&OutputFormat::ALL), default_value = "markdown")]
    pub(crate) format: OutputFormat,
}

/// `fetchwell commoncrawl batch`.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// The cluster.idx of the crawl; download it from BASE/cc-index/collections/CRAWL/indexes/cluster.idx
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_idx: PathBuf,
    #[command(flatten)]
    crawl: CrawlArgs,
    #[command(flatten)]
    queue: QueueArgs,
    /// Only pages in this language, as a three-letter code such as eng; any: all pages
    #[arg(long, value_name = "CODE", default_value = "eng", value_parser = language)]
    pub(crate) lang: String,
    /// Only pages whose primary language is --lang
    #[arg(long)]
    pub(crate) primary: bool,
    /// Only pages captured with this HTTP status; any: all pages
    #[arg(long, value_name = "CODE", default_value = "200")]
    pub(crate) status: String,
    /// Only pages of this media type
    #[arg(long, value_name = "TYPE")]
    pub(crate) mime: Option<String>,
    /// Only pages whose URL starts with this prefix
    #[arg(long, value_name = "URL")]
    pub(crate) url_prefix: Option<String>,
    /// Minimum size of the record in the archive, such as 1KiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) min_length: Option<u64>,
    /// Maximum size of the record in the archive
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_length: Option<u64>,
    /// Pages per batch
    #[arg(long, value_name = "N", default_value = "50", value_parser = whole(1, 10_000))]
    pub(crate) batch_size: usize,
    /// Sort pages by their position in the archive, so that workers read adjacent records in one request
    #[arg(long)]
    pub(crate) by_file: bool,
    /// Stop after this many pages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Only count; publish nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Checkpoint file, used to continue after a stop [default: FILE.checkpoint]
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Address to serve metrics on; '' disables metrics [default: 0.0.0.0:9000]
    #[arg(long, value_name = "ADDR:PORT")]
    metrics_listen: Option<String>,
}

/// `fetchwell commoncrawl work`.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    queue: QueueArgs,
    /// Folder for the documents [default: documents]
    #[arg(long, value_name = "DIR")]
    output: Option<String>,
    /// Format of the documents: jsonl.zst or parquet [default: jsonl.zst]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Maximum number of unacknowledged batches [default: 32]
    #[arg(long, value_name = "N")]
    prefetch: Option<String>,
    /// Address to serve metrics on; '' disables metrics [default: 0.0.0.0:9001]
    #[arg(long, value_name = "ADDR:PORT")]
    metrics_listen: Option<String>,
    /// Minimum length of the text, in characters
    #[arg(long, value_name = "CHARACTERS", default_value = "0")]
    pub(crate) min_length: usize,
    /// Maximum length of the text, in characters
    #[arg(long, value_name = "CHARACTERS")]
    pub(crate) max_length: Option<usize>,
    /// Only documents in one of these languages, by full codes (eng, en); repeat or separate with commas
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) lang: Vec<String>,
}

fn language(text: &str) -> Result<String, String> {
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    is_code.then(|| text.to_owned()).ok_or_else(|| {
        "use a three-letter code from the index, such as eng, deu or zho, or any".to_owned()
    })
}

fn timestamp(text: &str) -> Result<String, String> {
    let is_time = (4..=14).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_time.then(|| text.to_owned()).ok_or_else(|| {
        "use digits, starting with the year, such as 20240712000102 or 202407".to_owned()
    })
}

fn error_kind() -> PossibleValuesParser {
    PossibleValuesParser::new(PASSING_KINDS.into_iter().chain(LASTING_KINDS))
}

impl CommonCrawlCommand {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        match self {
            CommonCrawlCommand::Find(FindArgs { crawl, .. })
            | CommonCrawlCommand::Get(GetArgs { crawl, .. }) => crawl.settings(),
            CommonCrawlCommand::Batch(args) => args.settings(),
            CommonCrawlCommand::Work(args) => args.settings(),
            CommonCrawlCommand::Dead {
                command: DeadCommand::List(queue) | DeadCommand::Retry(DeadRetryArgs { queue, .. }),
            } => queue.settings(),
            CommonCrawlCommand::RetryErrors(args) => args.settings(),
        }
    }
}

impl BatchArgs {
    fn settings(&self) -> Vec<Flag<'static>> {
        let key = "commoncrawl.batch_metrics_listen";
        let own = given([(key, "--metrics-listen", &self.metrics_listen)]);
        [self.crawl.settings(), self.queue.settings(), own].concat()
    }

    /// The rules of `batch`, from the arguments and the settings.
    pub(super) fn rules(&self, values: &Values) -> Result<BatchRules, Exit> {
        Ok(BatchRules {
            cluster_idx: self.cluster_idx.clone(),
            crawl: values.commoncrawl_crawl.clone(),
            batching: self.batching()?,
            batch_size: self.batch_size,
            by_file_pages: values.commoncrawl_by_file_pages,
            limit: self.limit,
            max_concurrency: values.commoncrawl_max_concurrency,
        })
    }

    fn batching(&self) -> Result<Batching, Exit> {
        let status = match self.status.as_str() {
            ANY => None,
            status => Some(status.parse().map_err(|_| {
                Exit::Usage(format!(
                    "--status {status} is not a status: use a number such as 200, or any"
                ))
            })?),
        };
        let place = if self.primary { LanguagePlace::Primary } else { LanguagePlace::Any };
        let language = (self.lang != ANY).then(|| Language { code: self.lang.clone(), place });
        let filter = IndexFilter {
            status,
            language,
            mime: self.mime.clone(),
            url_prefix: self.url_prefix.clone(),
            length_bytes: self.length_bytes(),
        };
        Ok(Batching { filter, by_file: self.by_file })
    }

    fn length_bytes(&self) -> Option<std::ops::RangeInclusive<u64>> {
        let least = self.min_length;
        let most = self.max_length;
        (least.is_some() || most.is_some()).then(|| least.unwrap_or(0)..=most.unwrap_or(u64::MAX))
    }
}

impl WorkArgs {
    fn settings(&self) -> Vec<Flag<'static>> {
        let own = given([
            ("commoncrawl.output", "--output", &self.output),
            ("commoncrawl.format", "--format", &self.format),
            ("commoncrawl.prefetch", "--prefetch", &self.prefetch),
            ("commoncrawl.work_metrics_listen", "--metrics-listen", &self.metrics_listen),
        ]);
        [self.archive.settings(), self.queue.settings(), own].concat()
    }

    /// The rules of `work`, from the arguments and the settings.
    pub(super) fn rules(self, values: &Values) -> Result<WorkRules, StoreError> {
        let WorkArgs { min_length, max_length, lang, .. } = self;
        Ok(WorkRules {
            base: values.commoncrawl_base.to_string(),
            output: OutputTarget::create(&values.commoncrawl_output)?,
            segments: SegmentRule {
                format: match values.commoncrawl_format {
                    DocumentFormat::JsonLines => SegmentFormat::JsonLines,
                    DocumentFormat::Parquet => SegmentFormat::Parquet,
                },
                max_bytes: values.commoncrawl_segment_size,
                max_age: values.commoncrawl_segment_age,
            },
            prefetch: values.commoncrawl_prefetch,
            join: JoinRule {
                max_gap_bytes: values.commoncrawl_join_gap,
                max_range_bytes: values.commoncrawl_max_range,
            },
            max_record_bytes: usize::try_from(values.commoncrawl_max_record).unwrap_or(usize::MAX),
            reading: ReadTime(values.extract_max_time),
            filter: DocumentFilter {
                min_chars: min_length,
                max_chars: max_length,
                languages: lang,
            },
        })
    }
}

impl RetryErrorsArgs {
    fn settings(&self) -> Vec<Flag<'static>> {
        let own = given([("commoncrawl.output", "--output", &self.output)]);
        [self.queue.settings(), own].concat()
    }
}

impl ArchiveArgs {
    fn settings(&self) -> Vec<Flag<'static>> {
        given([("commoncrawl.base", "--base", &self.base)])
    }
}

impl CrawlArgs {
    fn settings(&self) -> Vec<Flag<'static>> {
        let own = given([("commoncrawl.crawl", "--crawl", &self.crawl)]);
        [self.archive.settings(), own].concat()
    }
}

impl QueueArgs {
    fn settings(&self) -> Vec<Flag<'static>> {
        let transient = self.queue_transient.then(|| "true".to_owned());
        given([("commoncrawl.queue_transient", "--queue-transient", &transient)])
    }
}
