"""The URLs: hosts are addresses of the loopback device, so that no fetcher needs a name server."""

HOSTS_A_BLOCK = 250
# The web's popularity: the host of rank r has a share of 1/r.
ZIPF_EXPONENT = 1.0


def host(index):
    """The address of a host; there are some sixty thousand."""
    block, last = divmod(index, HOSTS_A_BLOCK)
    return f"127.0.{block}.{last + 1}"


def even(hosts, pages):
    """Pages that are spread evenly, host after host: neighbours in the list are of different hosts."""
    return [(host(number % hosts), f"/page/{number}") for number in range(pages)]


def skewed(hosts, pages):
    """Pages of which the first hosts have by far the most, host after host as long as each has some left."""
    shares = [rank**-ZIPF_EXPONENT for rank in range(1, hosts + 1)]
    counts = [max(1, round(pages * share / sum(shares))) for share in shares]
    return [
        (host(index), f"/page/{number}")
        for number in range(max(counts))
        for index, count in enumerate(counts)
        if number < count
    ]


def largest(pages):
    """How many pages the host with the most has."""
    counts = {}
    for name, _ in pages:
        counts[name] = counts.get(name, 0) + 1
    return max(counts.values())


def named(name):
    """The same host with a name in place of its address."""
    return name.replace(".", "-") + ".test"
