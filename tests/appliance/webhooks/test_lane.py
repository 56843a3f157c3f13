"""What may be under way to one endpoint at a time."""

from appliance.model.delivery import DueDelivery
from appliance.webhooks.lane import HELD_MAX, Lane


def a_lane(*, retries=False):
    lane = Lane("endpoint")
    lane.more_retries = retries
    return lane


def a_delivery(seq, reservation_id="another"):
    name = f"reservation {seq}" if reservation_id == "another" else reservation_id
    return DueDelivery(seq, f"delivery {seq}", 0, "reservation.created", name, 0)


def fill(lane, *, retry, first=0):
    """Start attempts until there is no more room; what was started."""
    started = []
    while (lane.room_for_retries if retry else lane.room_for_untried)() > 0:
        started.append(a_delivery(first + len(started)))
        lane.begin(started[-1], retry=retry)
    return started


def test_eight_first_attempts_at_most():
    lane = a_lane()

    assert len(fill(lane, retry=False)) == 8
    assert lane.in_flight == 8


def test_retries_take_half_the_window_at_most():
    lane = a_lane(retries=True)

    assert len(fill(lane, retry=True)) == 4
    assert len(fill(lane, retry=False, first=100)) == 4


def test_waiting_retries_keep_one_slot_from_first_attempts():
    lane = a_lane(retries=True)

    assert len(fill(lane, retry=False)) == 7
    assert len(fill(lane, retry=True, first=100)) == 1


def test_at_the_smallest_window_neither_kind_waits_for_the_other():
    lane = a_lane(retries=True)
    strain(lane, 8)

    assert len(fill(lane, retry=True)) == 1
    assert len(fill(lane, retry=False, first=100)) == 1


def test_each_strained_answer_halves_the_window_and_a_clean_window_doubles_it():
    lane = a_lane()

    widths = []
    for _ in range(4):
        strain(lane, 1)
        widths.append(lane.window)
    for _ in range(1 + 2 + 4):
        lane.adapt(delivered=True, strained=False)
        widths.append(lane.window)

    assert widths == [4, 2, 1, 1, 2, 2, 4, 4, 4, 4, 8]


def test_a_place_that_comes_free_alone_is_for_a_fresh_attempt_every_other_time():
    lane = a_lane()

    shares = []
    for _ in range(4):
        shares.append(lane.share_of_fresh(1))
        lane.share_of_fresh(0)  # asked again in the same round, when there is nothing left

    assert shares == [1, 0, 1, 0]


def test_a_plain_refusal_leaves_the_window_alone():
    lane = a_lane()

    lane.adapt(delivered=False, strained=False)

    assert lane.window == 8


def test_two_deliveries_about_one_reservation_never_travel_together():
    lane = a_lane()
    first, second, third = (a_delivery(seq, "one") for seq in (1, 2, 3))

    lane.begin(first, retry=False)
    assert lane.holds_back(second)
    lane.hold(second)
    lane.hold(third)
    assert not lane.released
    lane.end(first, retry=False)

    assert list(lane.released) == [2]


def test_test_events_have_no_reservation_and_wait_for_nothing():
    lane = a_lane()
    lane.begin(a_delivery(1, None), retry=False)

    assert not lane.holds_back(a_delivery(2, None))


def test_memory_holds_a_bounded_number_of_waiting_deliveries():
    lane = a_lane()
    lane.begin(a_delivery(0, "one"), retry=False)
    for seq in range(1, HELD_MAX + 1):
        assert not lane.holds_too_many
        lane.hold(a_delivery(seq, "one"))

    assert lane.holds_too_many


def test_the_cursor_returns_to_the_start_only_when_nothing_is_left_behind_it():
    lane = a_lane()
    lane.cursor, lane.more_untried = 7, False
    delivery = a_delivery(7)
    lane.begin(delivery, retry=False)
    lane.end(delivery, retry=False)
    lane.settle()
    assert lane.cursor == 7

    lane.finish(7)

    assert lane.cursor == 0


def strain(lane, times):
    for _ in range(times):
        lane.adapt(delivered=False, strained=True)
