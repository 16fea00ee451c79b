//! What happens to pages on their way: cuts, noise, and tags that never end.

use super::chance::Chance;

type Mutation = fn(&mut Vec<u8>, &[(&str, String)], &mut Chance);

const MUTATIONS: [(&str, Mutation); 9] = [
    ("cut", |body, _, chance| body.truncate(chance.below(body.len() + 1))),
    ("unclosed", |body, _, chance| {
        let part = *chance.of(&UNCLOSED);
        insert(body, part, 1, chance);
    }),
    ("repeated tag", |body, _, chance| {
        let part = *chance.of(&TAGS);
        let times = 1 << chance.below(12);
        insert(body, part, times, chance);
    }),
    ("noise", |body, _, chance| {
        for _ in 0..1 + chance.below(200) {
            let at = chance.below(body.len());
            let byte = chance.below(256) as u8;
            if let Some(old) = body.get_mut(at) {
                *old = byte;
            }
        }
    }),
    ("NULs", |body, _, chance| {
        let times = 1 + chance.below(500);
        insert(body, b"\0", times, chance);
    }),
    ("rotated", |body, _, chance| {
        let middle = chance.below(body.len());
        body.rotate_left(middle);
    }),
    ("stuttering", |body, _, chance| {
        let start = chance.below(body.len());
        let part = body[start..(start + 1 + chance.below(500)).min(body.len())].to_vec();
        let times = 1 + chance.below(40);
        insert(body, &part, times, chance);
    }),
    ("gaps", |body, _, chance| {
        for _ in 0..1 + chance.below(20) {
            let start = chance.below(body.len());
            let end = (start + chance.below(30)).min(body.len());
            body.drain(start..end);
        }
    }),
    ("crossed", |body, pages, chance| {
        let (_, other) = chance.of(pages);
        let start = chance.below(other.len());
        let at = chance.below(body.len() + 1);
        body.splice(at.., other.as_bytes()[start..].iter().copied());
    }),
];

const UNCLOSED: [&[u8]; 12] = [
    b"<!--",
    b"<script>",
    b"<style>",
    b"<title>",
    b"<a href=\"",
    b"<p class='",
    b"<svg>",
    b"<textarea>",
    b"<template>",
    b"<![CDATA[",
    b"<noscript>",
    b"</",
];

const TAGS: [&[u8]; 12] = [
    b"<div>",
    b"<svg>",
    b"<table><tr><td>",
    b"<ul><li>",
    b"<b><i>",
    b"<blockquote>",
    b"</div>",
    b"&",
    b"<x-y ",
    b"<h1>",
    b"<a href=x>",
    b"<pre>",
];

/// The page after one to three of these, and their names.
pub(crate) fn mutated(
    page: &[u8],
    pages: &[(&str, String)],
    chance: &mut Chance,
) -> (String, Vec<u8>) {
    let mut body = page.to_vec();
    let mut names = Vec::new();
    for _ in 0..1 + chance.below(3) {
        let (name, mutate) = chance.of(&MUTATIONS);
        mutate(&mut body, pages, chance);
        names.push(*name);
    }
    (names.join(", "), body)
}

fn insert(body: &mut Vec<u8>, part: &[u8], times: usize, chance: &mut Chance) {
    let at = chance.below(body.len() + 1);
    body.splice(at..at, part.repeat(times));
}
