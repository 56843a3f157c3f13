from appliance.api_keys import SCOPES, find_key, find_key_by_hash, issue_key, revoke_key
from appliance.core.tokens import hash_token


async def issue(box, **changes):
    return await box.live.database.write(issue_key, "live", "Partner", **changes)


async def find(box, key_id):
    return await box.live.database.read(find_key, key_id)


async def test_a_key_is_found_by_its_hash_and_kept_with_what_recognises_it(box):
    issued = await issue(box)

    found = await box.live.database.read(find_key_by_hash, hash_token(issued.key))

    assert found.id == found.lineage == issued.id
    assert (found.prefix, found.last_four) == (issued.key[:13], issued.key[-4:])
    assert found.scopes == issued.scopes == SCOPES
    assert (found.last_used_at, found.revoked_at) == (None, None)


async def test_revoking_counts_from_the_first_time(box, clock):
    issued = await issue(box)
    assert await box.live.database.write(revoke_key, issued.id)
    first = (await find(box, issued.id)).revoked_at
    clock.advance(60)

    assert await box.live.database.write(revoke_key, issued.id)

    assert (await find(box, issued.id)).revoked_at == first == clock.now() - 60_000
    assert not await box.live.database.write(revoke_key, "nope")
