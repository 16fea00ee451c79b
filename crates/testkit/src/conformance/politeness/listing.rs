//! The known sites and their state.

use std::collections::BTreeSet;

use fetchwell_engine::ports::politeness::SiteAsk;
use fetchwell_engine::ports::sites::{
    Condition, KnownSite, SITES_PER_PAGE, SiteOrder, SiteQuery, SiteRank,
};
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::url::Site;

use super::PolitenessStore;
use super::keeping::{full_record, origin};
use super::trial::{RATE, Trial, ask, report, secs, site};

/// Sorted by the bytes of their names, each once, for any page size.
pub async fn sites_are_listed_by_name_page_by_page(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let names: BTreeSet<String> = (0..451)
        .map(|n| format!("{}{}.test", ["a-b", "a.b", "ab", "a0"][n % 4], n * 7 % 1_000))
        .collect();
    let asks: Vec<SiteAsk> = names.iter().map(|name| ask(name)).collect();
    trial.turn(&[], &asks).await;
    for most in [1_000, 60, 7] {
        let query = SiteQuery { most, ..SiteQuery::default() };
        let (listed, pages) = list(&trial, query).await;
        assert!(pages >= names.len().div_ceil(most.min(SITES_PER_PAGE)), "{pages} pages of {most}");
        assert!(listed.iter().map(|known| known.site.as_str()).eq(&names), "pages of {most}");
    }
}

/// With everything that the store knows about it.
pub async fn a_site_is_shown_with_its_state_and_its_robots_txt(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.go("a.test").await;
    trial.report(report("a.test", Mark::Limited, None, 0)).await;
    let record = full_record(trial.now());
    trial.store.keep_robots(&origin("http://a.test"), &record).await.expect("it is kept");
    let (known, now) = trial.store.site(&site("a.test")).await.expect("it can be read");
    assert_eq!((Some(known.state.clone()), now), (trial.look("a.test").await, trial.now()));
    assert_eq!(known.state.limited.in_the_last_hour(now), 1);
    assert_eq!(known.robots, [(origin("http://a.test"), record)]);
    let (listed, _) = list(&trial, SiteQuery { most: 10, ..SiteQuery::default() }).await;
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].state, &listed[0].robots), (&known.state, &known.robots));
    let (unknown, _) = trial.store.site(&site("never.test")).await.expect("it can be asked for");
    assert_eq!((unknown.state, unknown.robots), (Default::default(), Vec::new()));
    assert_eq!(trial.look("never.test").await, None, "a look makes no site");
}

/// By a part of their names, and by their condition.
pub async fn sites_are_found_by_name_and_by_condition(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let plain: Vec<SiteAsk> = (0..1_200).map(|n| ask(&format!("plain{n}.test"))).collect();
    trial.turn(&[], &plain).await;
    trial.order("paused.test", Order::Pause).await;
    trial.order("rated.test", Order::SetInterval(secs(9))).await;
    trial.fail_until_open("down.test").await;
    trial.report(report("resting.test", Mark::Neutral, Some(secs(1_200)), 0)).await;
    trial.report(report("limited.test", Mark::Limited, Some(secs(1)), 0)).await;
    trial.clock.advance(secs(60));
    for (condition, expected) in [
        (Condition::Paused, "paused.test"),
        (Condition::Rated, "rated.test"),
        (Condition::BreakerOpen, "down.test"),
        (Condition::FailedLately, "down.test"),
        (Condition::Resting, "resting.test"),
        (Condition::LimitedLately, "limited.test"),
    ] {
        let query = SiteQuery { condition: Some(condition), most: 50, ..SiteQuery::default() };
        assert_eq!(names(&trial, query).await, [expected], "{condition:?}");
    }
    let with_text = |text: &str, condition| SiteQuery {
        text: Some(text.to_owned()),
        condition,
        most: 50,
        ..SiteQuery::default()
    };
    assert_eq!(names(&trial, with_text("ate", None)).await, ["rated.test"]);
    assert_eq!(names(&trial, with_text("n119", None)).await.len(), 11);
    assert_eq!(names(&trial, with_text("rate", Some(Condition::Paused))).await, [""; 0]);
    assert_eq!(names(&trial, with_text("%", None)).await, [""; 0], "a text is no pattern");
    // Changes by time alone are visible, too.
    trial.clock.advance(secs(7_200));
    let resting = SiteQuery { condition: Some(Condition::Resting), ..with_text("", None) };
    assert_eq!(names(&trial, resting).await, [""; 0]);
}

/// Those with a rank first, page by page, each once; what has none is left to the query without rank.
pub async fn sites_are_ranked_worst_first_and_the_rest_follow_by_name(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.turn(&[], &[ask("zebra.test"), ask("aardvark.test")]).await;
    for name in ["m.test", "b.test", "x.test"] {
        trial.order(name, Order::Pause).await;
    }
    trial.order("rated.test", Order::SetInterval(secs(9))).await;
    trial.fail_until_open("y.test").await;
    trial.report(report("resting.test", Mark::Neutral, Some(secs(1_200)), 0)).await;
    for _ in 0..2 {
        trial.report(report("limited.test", Mark::Limited, Some(secs(1)), 0)).await;
    }
    trial.report(report("once.test", Mark::Limited, Some(secs(1)), 0)).await;
    trial.clock.advance(secs(60));
    let worst_first =
        ["y.test", "resting.test", "b.test", "m.test", "x.test", "limited.test", "once.test"];
    let ordered = |order, most| SiteQuery { order, most, ..SiteQuery::default() };
    for most in [50, 7, 3, 1] {
        let query = ordered(SiteOrder::Ranked(SiteRank::Trouble), most);
        assert_eq!(names(&trial, query).await, worst_first, "pages of {most}");
        let query = ordered(SiteOrder::Unranked(SiteRank::Trouble), most);
        let others = ["aardvark.test", "rated.test", "zebra.test"];
        assert_eq!(names(&trial, query).await, others, "pages of {most}");
    }
    let by_limited = ordered(SiteOrder::Ranked(SiteRank::Limited), 1);
    assert_eq!(names(&trial, by_limited).await, ["limited.test", "once.test"]);
    let by_failed = ordered(SiteOrder::Ranked(SiteRank::Failed), 50);
    assert_eq!(names(&trial, by_failed).await, ["y.test"]);
    let paused = SiteQuery {
        condition: Some(Condition::Paused),
        text: Some("x".to_owned()),
        ..ordered(SiteOrder::Ranked(SiteRank::Trouble), 50)
    };
    assert_eq!(names(&trial, paused).await, ["x.test"]);
}

/// Groups and webhook receivers are paced like sites, but are not sites.
pub async fn what_is_no_site_of_the_web_is_not_listed(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let apart =
        |realm| SiteAsk { site: Site::apart(realm, "a.test"), rate: RATE, follows_robots: false };
    trial.turn(&[], &[apart("webhook"), ask("a.test"), apart("group")]).await;
    let all = SiteQuery { most: 50, ..SiteQuery::default() };
    assert_eq!(names(&trial, all).await, ["a.test"]);
}

/// All sites that a query finds, and the number of pages.
async fn list(trial: &Trial, mut query: SiteQuery) -> (Vec<KnownSite>, usize) {
    let mut found = Vec::new();
    let mut pages = 0;
    loop {
        let page = trial.store.sites(&query).await.expect("sites can be listed");
        assert!(page.sites.len() <= query.most.min(SITES_PER_PAGE));
        assert_eq!(page.now, trial.now());
        pages += 1;
        found.extend(page.sites);
        query.after = page.next;
        if query.after.is_none() {
            return (found, pages);
        }
    }
}

async fn names(trial: &Trial, query: SiteQuery) -> Vec<String> {
    let (found, _) = list(trial, query).await;
    found.into_iter().map(|known| known.site.to_string()).collect()
}
