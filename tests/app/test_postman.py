"""The Postman collection (`/docs/postman.json`)."""

from web.api.postman import STEPS
from web.routes import PARTNER_ROUTE_TABLE


async def test_the_collection_contains_every_call_with_the_values_of_this_box(running):
    async with running.client.get("/test/docs/postman.json") as response:
        collection = await response.json(content_type=None)

    assert set(STEPS) == {route.operation_id for route in PARTNER_ROUTE_TABLE}
    assert len(collection["item"]) == len(STEPS)
    variables = {each["key"]: each["value"] for each in collection["variable"]}
    assert variables["url"].endswith("/test")
    assert variables["key"] == ""
