"""Settings, by environment: PAGE_FETCHER_REDIS_URL and so on."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class PageFetcherConfig(BaseSettings):
    """The design's settings, and two of our own at the end."""

    model_config = SettingsConfigDict(env_prefix="PAGE_FETCHER_")

    redis_url: str = "redis://localhost:6379"
    kafka_bootstrap_servers: str = "localhost:9092"
    input_queue: str = "crawler_queue"
    dlq_queue: str = "page_fetcher_dlq"
    webpage_log_topic: str = "webpage_log"
    request_timeout_seconds: float = 30.0
    max_retries: int = 3
    retry_backoff_base_seconds: float = 2.0
    user_agent: str = "OttoBot/1.0"
    max_redirects: int = 5
    cache_ttl_seconds: int = 3600
    rate_limit_per_second: float = 1.0
    circuit_breaker_failure_threshold: int = 5
    circuit_breaker_initial_backoff_seconds: float = 30.0
    circuit_breaker_max_backoff_seconds: float = 300.0
    circuit_breaker_backoff_multiplier: float = 2.0
    robots_txt_cache_ttl_seconds: int = 86400
    poll_timeout_seconds: float = 5.0

    # Tasks that take and fetch URLs side by side.
    concurrency: int = 64
    # Ends when no URL came for a poll's time-out.
    exit_when_idle: bool = False
