"""URLs that partners must not make the box call, in all known spellings."""

from tests.webhooks.spellings import MISSPELT, ODD


def _https(rests):
    return [f"https://{rest}" for rest in rests.split()]


LOOPBACK = _https(
    """
    127.0.0.1/ 127.0.0.1:8080/hook 127.1.2.3/ 127.255.255.254/ 127.1/ 127.0.1/ 127.0.0.1./
    0177.0.0.1/ 0177.0.0.01/ 0x7f.0.0.1/ 0x7f.1/ 0x7f000001/ 0X7F000001/ 2130706433/
    017700000001/ 127.0.0.1%2f@receiver.example/ [::1]/ [::1]:8443/ [0:0:0:0:0:0:0:1]/
    [0000:0000:0000:0000:0000:0000:0000:0001]/ [::ffff:127.0.0.1]/ [::ffff:7f00:1]/
    [::FFFF:7F00:0001]/ [::127.0.0.1]/ [::7f00:1]/ [::ffff:0:127.0.0.1]/ [::ffff:0:7f00:1]/
    [64:ff9b::127.0.0.1]/ [64:ff9b::7f00:1]/ [64:ff9b:1::7f00:1]/ [2002:7f00:1::1]/
    [2002:7f00:0001::]/ [2001:0:7f00:1::]/ [2606:4700::5efe:7f00:1]/
    [2606:4700::200:5efe:127.0.0.1]/ [fe80::5efe:127.0.0.1]/ [::1%25lo]/ [::1%lo]/
    """
)
LINK_LOCAL = _https(
    """
    169.254.169.254/latest/meta-data/ 169.254.169.254:8443/ 169.254.0.1/ 169.254.169.254./
    2852039166/latest/ 0xa9fea9fe/ 0xa9.0xfe.0xa9.0xfe/ 0251.0376.0251.0376/ 169.254.43518/
    169.16689662/ [::ffff:169.254.169.254]/ [::ffff:a9fe:a9fe]/ [64:ff9b::a9fe:a9fe]/
    [2002:a9fe:a9fe::]/ [fe80::1]/ [fe80::1%25eth0]/ [febf::1]/ [fd00:ec2::254]/latest/
    """
)
PRIVATE = _https(
    """
    10.0.0.1/ 10.255.255.255/ 10.1/ 012.0.0.1/ 167772161/ 0x0a000001/ 172.16.0.1/
    172.31.255.254/ 192.168.0.1/ 192.168.1.254:8443/ 192.168.257/ 3232235777/ 100.64.0.1/
    100.127.255.254/ [fc00::1]/ [fd12:3456:789a::1]/ [fdff:ffff::1]/ [::ffff:10.0.0.1]/
    [::ffff:192.168.1.1]/ [::ffff:100.64.0.1]/ [64:ff9b::10.0.0.1]/ [2002:a00:1::]/
    [2002:c0a8:101::1]/
    """
)
SPECIAL = _https(
    """
    0.0.0.0/ 0.0.0.0:8443/ 0/ 00/ 0x0/ 0.1.2.3/ [::]/ [::]:8443/ [::0.0.0.0]/ 192.0.0.8/
    192.0.0.170/ 192.0.2.1/ 192.31.196.1/ 192.52.193.1/ 192.88.99.3/ 192.175.48.1/ 198.18.0.1/
    198.19.255.255/ 198.51.100.7/ 203.0.113.7/ 224.0.0.1/ 239.255.255.250/ 240.0.0.1/
    255.255.255.255/ 4294967295/ [100::1]/ [2001:db8::1]/ [2001:2::1]/ [2001:10::1]/
    [2001:20::1]/ [3fff::1]/ [5f00::1]/ [fec0::1]/ [ff02::1]/ [ff0e::1]/ [2620:4f:8000::1]/
    [4000::1]/
    """
)
REFUSED = LOOPBACK + LINK_LOCAL + PRIVATE + SPECIAL + MISSPELT + ODD

# Names that resolve to internal addresses, some of them to external ones as well.
NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "localhost.": ["127.0.0.1"],
    "ip6-localhost": ["::1"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "7f000001.nip.example": ["127.0.0.1"],
    "10-0-0-1.sslip.example": ["10.0.0.1"],
    "metadata.google.example": ["169.254.169.254"],
    "router.example": ["192.168.1.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "mapped-private.example": ["::ffff:10.0.0.1"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "six-to-four.example": ["2002:7f00:1::1"],
    "teredo.example": ["2001:0:4136:e378:8000:63bf:80ff:fffe"],
    "isatap.example": ["2606:4700::5efe:7f00:1"],
    "compatible.example": ["::7f00:1"],
    "anywhere.example": ["0.0.0.0"],  # noqa: S104 - it is refused
    "anywhere-six.example": ["::"],
    "multicast.example": ["224.0.0.1"],
    "broadcast.example": ["255.255.255.255"],
    "link.example": ["fe80::1"],
    "unique.example": ["fd00::1"],
    "site.example": ["fec0::1"],
    "carrier.example": ["100.64.0.1"],
    "mixed.example": ["93.184.216.34", "127.0.0.1"],
    "mixed-six.example": ["93.184.216.34", "::1"],
    "mixed-private.example": ["2606:4700:4700::1111", "10.0.0.1"],
    "nothing.example": [],
}

ACCEPTED = _https(
    """
    receiver.example/ receiver.example receiver.example/hook?venue=1&x=%20 RECEIVER.Example/Hook
    receiver.example.:8443/ receiver.example:/ receiver.example:1024/ receiver.example:65535/a@b
    xn--rceiver-bya.example/ a_b.receiver.example/ receiver/ 1.receiver.example/ 93.184.216.34/
    8.8.8.8:8443/hook 172.15.0.1/ 172.32.0.1/ 100.63.255.255/ 100.128.0.1/
    [2606:4700:4700::1111]/ [2a00:1450:4007::200e]:8443/
    """
)
