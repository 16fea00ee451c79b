//! The image: small, without root, and with a way to ask for its health.

use super::text;

/// The instructions of a Dockerfile, continued lines joined, comments left out.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let instruction = |line: &str| {
        let (word, rest) = line.trim().split_once(' ')?;
        Some((word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    joined.lines().filter_map(instruction).collect()
}

#[test]
fn the_image_has_what_it_needs_and_no_more() {
    let all = instructions(&text("Dockerfile"));
    let last_stage = all.iter().rposition(|(word, _)| word == "FROM").unwrap();
    let (build, last) = all.split_at(last_stage);
    assert!(build[0].1.ends_with(" AS build"), "{build:?}");
    let of = |word: &str| -> Vec<&str> {
        last.iter().filter(|(found, _)| found == word).map(|(_, rest)| rest.as_str()).collect()
    };
    assert!(of("FROM")[0].contains("distroless"), "{last:?}");
    assert_eq!(of("USER"), ["65532:65532"], "not root");
    assert!(of("RUN").is_empty(), "there is no shell in it");
    assert_eq!(of("ENTRYPOINT"), [r#"["fetchwell"]"#]);
    let health = of("HEALTHCHECK")[0];
    assert!(health.ends_with(r#"CMD ["fetchwell", "health", "http://127.0.0.1:8080/readyz"]"#));
    assert!(of("COPY").iter().all(|copy| copy.starts_with("--from=build ")), "{last:?}");
    assert_eq!(of("VOLUME"), ["/data"]);
}

#[test]
fn the_build_has_every_folder_of_the_workspace_and_its_toolchain() {
    let top = super::deploy().join("..");
    let manifest = std::fs::read_to_string(top.join("Cargo.toml")).unwrap();
    let members = manifest.lines().find(|line| line.starts_with("members")).unwrap();
    let dockerfile = text("Dockerfile");
    let ignored = text("Dockerfile.dockerignore");
    let members = members.split('"').skip(1).step_by(2);
    let folders = members.map(|path| path.split('/').next().unwrap());
    // The settings of cargo say how librdkafka is built.
    for folder in folders.chain([".cargo"]) {
        assert!(dockerfile.contains(&format!("COPY {folder} {folder}")), "{folder}");
        assert!(ignored.lines().any(|line| line == format!("!{folder}")), "{folder}");
    }
    let toolchain = std::fs::read_to_string(top.join("rust-toolchain.toml")).unwrap();
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = \"")).unwrap();
    let (version, _) = channel.rsplit_once('.').unwrap();
    assert!(dockerfile.contains(&format!("FROM rust:{version}")), "the toolchain is {channel}");
}
