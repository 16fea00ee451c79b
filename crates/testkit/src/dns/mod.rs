//! A real DNS server on UDP and TCP with scripted names, to test resolvers.

mod packet;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio_util::task::AbortOnDropHandle;

use self::packet::{Kind, NAME_ERROR, OK, Question, Record, SERVER_FAILURE};

/// The largest answer over UDP; a larger one is truncated and marked as such, so that the client tries TCP.
const MAX_UDP_BYTES: usize = 1_232;

/// How many aliases of a name are followed; the rest is left to the client.
const MAX_ALIASES: usize = 8;

/// How often to try to find a port that is free for both protocols.
const TRIES_FOR_A_PORT: usize = 20;

/// The answer for a name.
#[derive(Clone, Debug)]
pub enum Script {
    /// These addresses, of either family, with a TTL.
    Addresses(Vec<IpAddr>, u32),
    /// The first and the second addresses in turn, with a TTL of zero.
    Rebinding(Vec<IpAddr>, Vec<IpAddr>),
    /// Another name.
    Alias(String),
    /// NXDOMAIN, with this TTL if there is one.
    NoSuchName(Option<u32>),
    /// The name exists but has no records.
    NoRecords,
    /// SERVFAIL.
    Fails,
    /// No answer at all.
    Silent,
    /// Bytes that are not a DNS answer.
    Garbage,
    /// These addresses, with an ID that differs from the question's.
    WrongId(Vec<IpAddr>),
    /// This IPv4 address, and no answer to questions for IPv6 addresses.
    DeafToIpv6(IpAddr),
}

impl Script {
    /// Addresses with a TTL of a minute.
    ///
    /// # Panics
    ///
    /// If one is not an address.
    pub fn addresses(texts: &[&str]) -> Script {
        Script::Addresses(parsed(texts), 60)
    }

    /// Alternating addresses.
    ///
    /// # Panics
    ///
    /// If one is not an address.
    pub fn rebinding(first: &[&str], second: &[&str]) -> Script {
        Script::Rebinding(parsed(first), parsed(second))
    }
}

fn parsed(texts: &[&str]) -> Vec<IpAddr> {
    let parse = |text: &&str| text.parse().unwrap_or_else(|_| panic!("{text} is no address"));
    texts.iter().map(parse).collect()
}

/// A server. It stops when it is dropped.
pub struct DnsServer {
    /// The address that it listens on, for UDP and TCP.
    pub address: SocketAddr,
    zone: Arc<Zone>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl DnsServer {
    /// Listens on loopback. A name may be `*.` and a suffix; all other names do not exist.
    pub async fn start<N: Into<String>>(
        names: impl IntoIterator<Item = (N, Script)>,
    ) -> io::Result<DnsServer> {
        DnsServer::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), names).await
    }

    /// Listens on an address; port 0 takes any free port.
    pub async fn start_at<N: Into<String>>(
        address: SocketAddr,
        names: impl IntoIterator<Item = (N, Script)>,
    ) -> io::Result<DnsServer> {
        let scripts = names.into_iter().map(|(name, script)| (name.into(), script)).collect();
        let zone = Arc::new(Zone { scripts, asked: Mutex::default() });
        let (udp, tcp) = bind_both(address).await?;
        Ok(DnsServer {
            address: tcp.local_addr()?,
            zone: zone.clone(),
            _tasks: [
                AbortOnDropHandle::new(tokio::spawn(serve_udp(udp, zone.clone()))),
                AbortOnDropHandle::new(tokio::spawn(serve_tcp(tcp, zone))),
            ],
        })
    }

    /// How often a name was asked for, counting both address families.
    pub fn asked(&self, name: &str) -> usize {
        let asked = self.zone.asked.lock();
        asked.iter().filter(|((asked, _), _)| asked == name).map(|(_, count)| count).sum()
    }

    /// All names that were asked for.
    pub fn names_asked(&self) -> Vec<String> {
        let asked = self.zone.asked.lock();
        let mut names: Vec<String> = asked.keys().map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}

async fn bind_both(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut last = io::Error::other("no port was tried");
    for _ in 0..TRIES_FOR_A_PORT {
        let tcp = TcpListener::bind(address).await?;
        match UdpSocket::bind(tcp.local_addr()?).await {
            Ok(udp) => return Ok((udp, tcp)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn serve_udp(socket: UdpSocket, zone: Arc<Zone>) {
    let mut buffer = [0; 4_096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let Some(mut answer) = zone.answer(&buffer[..length]) else { continue };
        if answer.len() > MAX_UDP_BYTES {
            answer = packet::truncated(&answer);
        }
        // A client that is gone needs no answer.
        drop(socket.send_to(&answer, from).await);
    }
}

async fn serve_tcp(listener: TcpListener, zone: Arc<Zone>) {
    while let Ok((stream, _)) = listener.accept().await {
        let zone = zone.clone();
        tokio::spawn(async move { drop(serve_stream(stream, &zone).await) });
    }
}

async fn serve_stream(mut stream: TcpStream, zone: &Zone) -> io::Result<()> {
    loop {
        let mut question = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut question).await?;
        let Some(answer) = zone.answer(&question) else { continue };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&answer).await?;
    }
}

struct Zone {
    scripts: HashMap<String, Script>,
    asked: Mutex<HashMap<(String, Kind), usize>>,
}

impl Zone {
    /// The bytes of the answer, if there is one.
    fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let question = packet::read_question(bytes)?;
        let turn = self.count(&question);
        let mut records = Vec::new();
        let mut name = question.name.clone();
        let mut script = self.script(&name);
        while let Script::Alias(target) = script {
            records.push(Record::alias(&name, target));
            if records.len() == MAX_ALIASES {
                return Some(question.answer(OK, &records, None));
            }
            name.clone_from(target);
            script = self.script(&name);
        }
        let mut add = |addresses: &[IpAddr], ttl_secs| {
            let of_kind = addresses.iter().filter(|ip| Kind::of(**ip) == question.kind);
            records.extend(of_kind.map(|ip| Record::address(&name, *ip, ttl_secs)));
        };
        match script {
            Script::Addresses(addresses, ttl_secs) => add(addresses, *ttl_secs),
            Script::Rebinding(first, _) if turn.is_multiple_of(2) => add(first, 0),
            Script::Rebinding(_, second) => add(second, 0),
            Script::WrongId(addresses) => {
                add(addresses, 60);
                let mut answer = question.answer(OK, &records, None);
                answer[0] ^= 0xff;
                return Some(answer);
            }
            Script::NoSuchName(ttl_secs) => {
                return Some(question.answer(NAME_ERROR, &records, *ttl_secs));
            }
            Script::Fails => return Some(question.answer(SERVER_FAILURE, &records, None)),
            Script::Garbage => return Some(packet::garbage(bytes)),
            Script::DeafToIpv6(address) if question.kind == Kind::A => add(&[*address], 60),
            Script::Silent | Script::DeafToIpv6(_) => return None,
            Script::NoRecords | Script::Alias(_) => {}
        }
        Some(question.answer(OK, &records, None))
    }

    fn script(&self, name: &str) -> &Script {
        let suffixes = name.match_indices('.').map(|(at, _)| format!("*{}", &name[at..]));
        let mut found = suffixes.filter_map(|pattern| self.scripts.get(&pattern));
        self.scripts.get(name).or_else(|| found.next()).unwrap_or(&Script::NoSuchName(None))
    }

    /// Counts a question, and returns how often it was asked before.
    fn count(&self, question: &Question<'_>) -> usize {
        let mut asked = self.asked.lock();
        let count = asked.entry((question.name.clone(), question.kind)).or_default();
        *count += 1;
        *count - 1
    }
}
