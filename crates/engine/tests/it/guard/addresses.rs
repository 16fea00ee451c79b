//! Addresses that must never be dialled, and some that may be.

/// Addresses of every special range: the first, the last, and those that people meet in between.
pub(crate) const REFUSED: &str = "
    0.0.0.0 0.0.0.1 0.1.2.3 0.255.255.255 10.0.0.0 10.0.0.1 10.96.0.1 10.255.255.255 100.64.0.0
    100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.0 127.0.0.1 127.0.0.53 127.1.2.3
    127.255.255.254 127.255.255.255 168.63.129.16 169.254.0.0 169.254.42.42 169.254.169.253
    169.254.169.254 169.254.170.2 169.254.255.255 172.16.0.0 172.17.0.1 172.20.10.2 172.31.255.255
    192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.192 192.0.0.255 192.0.2.1 192.0.2.255 192.31.196.1
    192.52.193.1 192.88.99.1 192.88.99.2 192.168.0.0 192.168.0.1 192.168.1.1 192.168.255.255
    192.175.48.1 198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 224.0.0.251 232.1.1.1
    239.255.255.255 240.0.0.0 247.1.2.3 255.255.255.254 255.255.255.255 :: ::1 ::2 ::7f00:1
    ::10.0.0.1 ::8.8.8.8 ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
    ::ffff:192.168.1.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::
    64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b::8.8.8.8 64:ff9b:1:: 64:ff9b:1::10.0.0.1
    64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100:: 100::1 100:0:0:1::1 2001:: 2001:0:808:808::f5ff:fffe
    2001:1::1 2001:1::2 2001:2::1 2001:3::1 2001:4:112::1 2001:10::1 2001:1f:ffff::1 2001:20::1
    2001:30::1 2001:1ff:ffff::1 2001:db8::1 2001:db8:ffff:ffff::1 2002::1 2002:7f00:1::1
    2002:a00:1::1 2002:a9fe:a9fe::1 2002:808:808::1 2620:4f:8000::1 3fff::1 3fff:fff:ffff::1 4000::1
    5f00::1 a000::1 fc00::1 fd00::1 fd00:42::42 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::a9fe:a9fe
    febf::1 fec0::1 ff02::1";

/// Addresses to which the kernel itself opens no TCP connection from here: broadcast, multicast, and
/// link-local ones without an interface.
pub(crate) const NEVER_TCP: &str = "
    127.255.255.255 224.0.0.1 224.0.0.251 232.1.1.1 239.255.255.255 255.255.255.255 fe80::1
    fe80::a9fe:a9fe febf::1 ff02::1";

/// Ordinary addresses, some of them next to a special range.
pub(crate) const PUBLIC: &str = "
    93.184.216.34 8.8.8.8 1.0.0.0 172.32.0.1 223.255.255.255 2606:4700::1 2001:200::1 3ffe::1";

/// The addresses of a list.
pub(crate) fn listed(addresses: &'static str) -> Vec<&'static str> {
    addresses.split_whitespace().collect()
}
