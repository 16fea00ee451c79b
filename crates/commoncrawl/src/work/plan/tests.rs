use fetchwell_engine::web::Answer;
use fetchwell_testkit::samples::{MOMENT, end_of, lease, outcome};

use super::*;

/// The rules of a worker that has read a record already.
fn rules() -> Arc<BatchPlanRules> {
    let rules = rules_at_first();
    rules.base.record_came();
    rules
}

/// The rules of a worker that does not know yet whether there is an archive.
fn rules_at_first() -> Arc<BatchPlanRules> {
    Arc::new(BatchPlanRules {
        root: WebUrl::parse("http://archive.test/").unwrap(),
        join: JoinRule { max_gap_bytes: 0, max_range_bytes: 1 << 20 },
        max_record_bytes: 1 << 20,
        reading: ReadTime::default(),
        filter: DocumentFilter::default(),
        in_hand: InHand::for_records_of(1 << 20),
        large: Arc::default(),
        base: Arc::new(BaseCheck::of(&"http://archive.test/")),
    })
}

/// A batch whose pages lie at these places of one file.
fn batch(places: &[(u64, u64)]) -> String {
    let page = |(offset, length): &(u64, u64)| {
        serde_json::json!({
            "surt_url": "com,example)/", "timestamp": "20240712000102",
            "metadata": {
                "url": "https://example.com/", "languages": "eng", "filename": "a/b.warc.gz",
                "offset": offset.to_string(), "length": length.to_string(),
            },
        })
    };
    serde_json::Value::from(places.iter().map(page).collect::<Vec<_>>()).to_string()
}

fn end(happened: FetchOutcome, rounds_failed: u32) -> (usize, Settlement) {
    let mut lease = lease("batch-1", &batch(&[(7, 9)]));
    lease.history.url_failures = rounds_failed;
    let (records, settlement) = end_of(plan(&rules(), &lease), happened);
    (records.len(), settlement)
}

#[test]
fn what_a_range_comes_to_decides_about_the_batch() {
    for status in [200, 206, 404, 416] {
        let (broken, settlement) = end(FetchOutcome::Answered(status), 0);
        assert_eq!((broken, settlement), (1, Settlement::Done), "{status}");
    }
    for status in [429, 500, 503] {
        let (records, settlement) = end(FetchOutcome::Answered(status), 0);
        assert!(matches!(settlement, Settlement::Retry { .. }), "{status}");
        assert_eq!(records, 0);
    }
    let (_, settlement) = end(FetchOutcome::Answered(500), 2);
    assert!(matches!(settlement, Settlement::Dead { .. }));
}

/// While no record has come, batches that find nothing wait, and the third ends the run.
#[test]
fn a_base_without_an_archive_stops_the_worker_and_nothing_is_said_of_its_pages() {
    for (status, header, body, said) in [
        (404, None, "", "404 for a/b.warc.gz"),
        (200, None, "<html>", "200 for a/b.warc.gz"),
        (416, None, "", "416 for a/b.warc.gz"),
        (301, Some(("location", "https://a.test/")), "", "a redirect to https://a.test/"),
        (206, Some(("content-range", "bytes 7-15/99")), "<!doctype", "HTML in place of a record"),
        (206, None, "<!doctype", "206 for a/b.warc.gz, but not the range that was asked for"),
    ] {
        let answered = || {
            let mut outcome = outcome(FetchOutcome::Answered(status), body);
            if let Some((name, value)) = header {
                let answer: &mut Answer = outcome.answer.as_mut().unwrap();
                answer.headers.insert(name, value.parse().unwrap());
            }
            outcome
        };
        let rules = rules_at_first();
        let end = |name| {
            let mut plan = plan(&rules, &lease(name, &batch(&[(7, 9)])));
            assert!(matches!(plan.step(None, MOMENT), Step::Fetch(_)));
            plan.step(Some(answered()), MOMENT)
        };
        for name in ["b-1", "b-2"] {
            let Step::Finish(records, Settlement::Retry { at, history, payload: None }) = end(name)
            else {
                panic!("{said}")
            };
            assert!(records.is_empty() && at > MOMENT.now, "{said}");
            assert_eq!(history, History::default(), "that was no failure of the batch");
        }
        let Step::Halt(reason) = end("b-3") else { panic!("it goes on after {said}") };
        assert!(reason.contains(said) && reason.contains("Check --base"), "{reason}");
        rules.base.record_came();
        let Step::Finish(records, Settlement::Done) = end("b-3") else { panic!("{said}") };
        assert!(matches!(&records[..], [WorkRecord::Broken(_)]), "{records:?}");
    }
}

#[test]
fn one_batch_of_missing_files_stops_no_worker_however_often_it_comes() {
    let rules = rules_at_first();
    let mut due = Vec::new();
    for _ in 0..5 {
        let plan = plan(&rules, &lease("b", &batch(&[(7, 9)])));
        let (records, settlement) = end_of(plan, FetchOutcome::Answered(404));
        let Settlement::Retry { at, .. } = settlement else { panic!("{settlement:?}") };
        assert!(records.is_empty());
        due.push(at);
    }
    assert!(due.is_sorted_by(|sooner, later| sooner < later), "it is asked for ever more rarely");
}

#[test]
fn a_record_shows_that_there_is_an_archive() {
    let (file, three) = three_pages();
    let rules = rules_at_first();
    let mut places = vec![(0, record(0).len() as u64)];
    places.push((file.len() as u64, 50)); // Behind the end of the file.
    let (_, records, settlement) = run(&mut *plan(&rules, &lease("b", &batch(&places))), &file);
    assert_eq!((records.len(), settlement), (2, Settlement::Done));
    assert_eq!(rules.base.batch_was_empty("b", "404"), Verdict::Archive);
    let (_, records, _) = run(&mut *plan(&rules, &lease("b", &three)), &file);
    assert_eq!(records.len(), 3);
}

#[test]
fn a_range_that_comes_short_is_asked_for_again() {
    let (file, three) = three_pages();
    let short = |request: &Request| {
        let mut outcome = serve(&file, request);
        let answer = outcome.answer.as_mut().unwrap();
        answer.body = answer.body.slice(..10);
        outcome
    };
    let end = |rounds_failed| {
        let mut lease = lease("b", &three);
        lease.history.url_failures = rounds_failed;
        let mut plan = plan(&rules(), &lease);
        let mut step = plan.step(None, MOMENT);
        let mut asked = 0;
        while let Step::Fetch(requests) = step {
            asked += 1;
            // Together and alone the second page is always cut off.
            let second = format!("bytes={}-", record(0).len());
            let is_cut = asked == 1 || requests[0].headers[0].1.starts_with(&second);
            let answer = if is_cut { short(&requests[0]) } else { serve(&file, &requests[0]) };
            step = plan.step(Some(answer), MOMENT);
        }
        step
    };
    let Step::Finish(records, Settlement::Retry { payload, history, .. }) = end(0) else {
        panic!("it is to be asked for again");
    };
    let missing: Vec<CdxRecord> = serde_json::from_slice(&payload.unwrap()).unwrap();
    assert_eq!((records.len(), missing.len(), history.url_failures), (2, 1, 1));
    let Step::Finish(records, Settlement::Dead { reason }) = end(2) else {
        panic!("three times are enough");
    };
    assert_eq!(records.len(), 2, "what came is kept");
    assert!(reason.contains("only 10 of"), "{reason}");
}

#[test]
fn a_page_that_takes_too_long_to_read_is_reported_with_the_setting() {
    let reading = ReadTime(Duration::ZERO);
    let rules = BatchPlanRules { reading, ..(*rules()).clone() };
    let file = record_of(&"<p>Some words of a page that is long.".repeat(20_000));
    let batch = batch(&[(0, file.len() as u64)]);
    let (_, records, settlement) = run(&mut *plan(&Arc::new(rules), &lease("b", &batch)), &file);
    let [WorkRecord::Broken(page)] = &records[..] else { panic!("{records:?}") };
    assert_eq!((&*page.kind, settlement), ("too_slow", Settlement::Done));
    assert!(page.reason.contains("extract.max_time"), "{}", page.reason);
}

/// A record that says its number, as it stands in a file.
fn record(number: usize) -> Vec<u8> {
    record_of(&format!("<p>Page {number}.</p>"))
}

fn record_of(html: &str) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
    let head = "WARC/1.0\r\nWARC-Type: response\r\nContent-Length";
    format!("{head}: {}\r\n\r\n{http}\r\n\r\n", http.len()).into_bytes()
}

/// Answers a request for a range of a file, as a server does.
fn serve(file: &[u8], request: &Request) -> Outcome {
    let range = ByteRange::of_header(&request.headers[0].1).unwrap();
    let from = usize::try_from(range.offset).unwrap().min(file.len());
    let to = usize::try_from(range.end()).unwrap().min(file.len());
    let mut outcome = outcome(FetchOutcome::Answered(206), "");
    let answer: &mut Answer = outcome.answer.as_mut().unwrap();
    let stated = format!("bytes {from}-{}/{}", to.saturating_sub(1), file.len());
    answer.headers.insert("content-range", stated.parse().unwrap());
    answer.body = file[from..to].to_vec().into();
    outcome
}

/// Steps a plan to its end, and counts what it asked for.
fn run(plan: &mut dyn Plan<WorkRecord>, file: &[u8]) -> (usize, Vec<WorkRecord>, Settlement) {
    let mut step = plan.step(None, MOMENT);
    let mut asked = 0;
    loop {
        match step {
            Step::Fetch(requests) => {
                assert_eq!(requests.len(), 1, "one range at a time");
                asked += 1;
                step = plan.step(Some(serve(file, &requests[0])), MOMENT);
            }
            Step::Finish(records, settlement) => return (asked, records, settlement),
            Step::Halt(reason) => panic!("{reason}"),
        }
    }
}

#[test]
fn near_pages_are_one_request_and_a_bad_place_spoils_no_other() {
    let records: Vec<Vec<u8>> = (0..3).map(record).collect();
    let file = records.concat();
    let mut places: Vec<(u64, u64)> = Vec::new();
    for record in &records {
        let offset = places.last().map_or(0, |(offset, length)| offset + length);
        places.push((offset, record.len() as u64));
    }
    let texts = |records: &[WorkRecord]| -> Vec<String> {
        let text = |record: &WorkRecord| match record {
            WorkRecord::Document(document) => Some(document.text.clone()),
            _ => None,
        };
        records.iter().filter_map(text).collect()
    };
    let want = ["Page 0.", "Page 1.", "Page 2."];
    let (asked, done, settlement) = run(&mut *plan(&rules(), &lease("b", &batch(&places))), &file);
    assert_eq!(
        (asked, texts(&done), settlement),
        (1, want.map(str::to_owned).to_vec(), Settlement::Done)
    );
    places.push((file.len() as u64, 50)); // Behind the end of the file.
    let (asked, done, settlement) = run(&mut *plan(&rules(), &lease("b", &batch(&places))), &file);
    assert_eq!((asked, texts(&done).len(), settlement), (1 + 4, 3, Settlement::Done));
    assert!(matches!(&done[3], WorkRecord::Broken(page) if page.kind == "range"), "{done:?}");
}

/// Three records of one file, and the batch of them.
fn three_pages() -> (Vec<u8>, String) {
    let length = record(0).len() as u64;
    let places: Vec<(u64, u64)> = (0..3).map(|number| (number * length, length)).collect();
    ((0..3).flat_map(record).collect(), batch(&places))
}

#[test]
fn while_others_have_much_in_hand_a_batch_waits_and_one_at_work_writes_what_it_has() {
    let rules = rules();
    let (file, batch) = three_pages();
    let others = rules.in_hand.hold(2 << 20);
    let (asked, records, settlement) = run(&mut *plan(&rules, &lease("b", &batch)), &file);
    assert!(matches!(settlement, Settlement::HandBack { at } if at > MOMENT.now), "{settlement:?}");
    assert_eq!((asked, records.len()), (0, 0));
    drop(others);
    let _others = rules.in_hand.hold((2 << 20) - 1);
    let (_, records, settlement) = run(&mut *plan(&rules, &lease("b", &batch)), &file);
    let Settlement::Retry { payload: Some(rest), .. } = settlement else {
        panic!("{settlement:?}")
    };
    let rest: Vec<CdxRecord> = serde_json::from_slice(&rest).unwrap();
    assert_eq!((records.len(), rest.len()), (1, 2), "the range was not read to its end");
    drop(records);
    let rest = serde_json::to_string(&rest).unwrap();
    let (_, records, _) = run(&mut *plan(&rules, &lease("b", &rest)), &file);
    assert_eq!(records.len(), 1, "what was written is in hand no more");
}

#[test]
fn an_archive_that_is_away_ends_the_round_and_loses_nothing() {
    let places = [(0, 10), (100, 10), (200, 10)];
    let mut plan = plan(&rules(), &lease("b", &batch(&places)));
    assert!(matches!(plan.step(None, MOMENT), Step::Fetch(_)));
    let answer = Some(outcome(FetchOutcome::Answered(503), ""));
    let Step::Finish(records, Settlement::Retry { payload, .. }) = plan.step(answer, MOMENT) else {
        panic!("it is to be tried again");
    };
    let left: Vec<CdxRecord> = serde_json::from_slice(&payload.unwrap()).unwrap();
    assert_eq!((records.len(), left.len()), (0, 3));
}

#[test]
fn a_refusal_ends_the_run() {
    for happened in [FetchOutcome::Answered(403), FetchOutcome::Refused("a private address".into())]
    {
        let mut plan = plan(&rules(), &lease("b", &batch(&[(0, 10)])));
        plan.step(None, MOMENT);
        let answer = Some(outcome(happened, ""));
        assert!(matches!(plan.step(answer, MOMENT), Step::Halt(_)));
    }
}

/// Three pages, oddly written: numbers and a null, a name that we do not know, and no time. Between them
/// stands something else.
fn odd_batch() -> (Vec<u8>, String) {
    let (file, batch) = three_pages();
    let mut items: Vec<serde_json::Value> = serde_json::from_str(&batch).unwrap();
    let length = record(0).len();
    items[0]["metadata"]["offset"] = 0.into();
    items[0]["metadata"]["length"] = length.into();
    items[0]["metadata"]["mime"] = serde_json::Value::Null;
    items[1]["batch"] = "of somebody else's".into();
    items[2].as_object_mut().unwrap().remove("timestamp");
    items.insert(1, "no page".into());
    (file, serde_json::Value::from(items).to_string())
}

#[test]
fn an_odd_item_spoils_no_other_and_is_told_of_with_its_place() {
    let (file, batch) = odd_batch();
    let (_, records, settlement) = run(&mut *plan(&rules(), &lease("b", &batch)), &file);
    assert_eq!((records.len(), settlement), (4, Settlement::Done));
    let texts = records.iter().filter(|record| matches!(record, WorkRecord::Document(_))).count();
    assert_eq!(texts, 2, "{records:?}");
    let broken = |record: &WorkRecord| match record {
        WorkRecord::Broken(page) => {
            Some((page.kind.clone(), page.reason.clone(), page.warc.clone()))
        }
        _ => None,
    };
    let broken: Vec<_> = records.iter().filter_map(broken).collect();
    let [(kind, reason, None), (other_kind, other_reason, Some(warc))] = &broken[..] else {
        panic!("{broken:?}");
    };
    assert_eq!((&**kind, &**other_kind), ("item", "item"));
    assert!(reason.contains("item 2 of 4") && reason.contains("not a JSON object"), "{reason}");
    assert!(other_reason.contains("item 4 of 4"), "{other_reason}");
    assert!(other_reason.contains("`timestamp`"), "{other_reason}");
    assert_eq!(warc.offset, 2 * record(0).len() as u64, "it is known by its place");
}

#[test]
fn another_round_has_the_pages_that_are_missing_and_no_odd_item_again() {
    let (file, batch) = odd_batch();
    let mut first = plan(&rules(), &lease("b", &batch));
    assert!(matches!(first.step(None, MOMENT), Step::Fetch(_)));
    let answer = Some(outcome(FetchOutcome::Answered(503), ""));
    let Step::Finish(told, Settlement::Retry { payload, .. }) = first.step(answer, MOMENT) else {
        panic!("it is to be tried again");
    };
    assert_eq!(told.len(), 2, "what is no page is told of at once: {told:?}");
    let rest = String::from_utf8(payload.unwrap()).unwrap();
    let (_, records, settlement) = run(&mut *plan(&rules(), &lease("b", &rest)), &file);
    assert_eq!((records.len(), settlement), (2, Settlement::Done));
    assert!(records.iter().all(|record| matches!(record, WorkRecord::Document(_))), "{records:?}");
}

#[test]
fn a_message_that_is_no_batch_is_given_up() {
    for body in ["", "{}", "7", "[1", "\u{0}", r#"{"surt_url":"a"}"#] {
        let step = plan(&rules(), &lease("b", body)).step(None, MOMENT);
        assert!(matches!(step, Step::Finish(_, Settlement::Dead { .. })), "{body}");
    }
    let step = plan(&rules(), &lease("b", "[]")).step(None, MOMENT);
    assert!(matches!(step, Step::Finish(_, Settlement::Done)), "an empty batch is done");
}
