"""Accessibility checks of a page with axe-core."""

from pathlib import Path

from playwright.async_api import Page

_ROOT = Path(__file__).parents[2]
_AXE = (_ROOT / "web/frontend/node_modules/axe-core/axe.min.js").read_text("utf-8")
_RULES = """async () => {
  const found = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
    "wcag22aa", "best-practice"], resultTypes: ["violations"] });
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((n) => n.html).join(" ")}`);
}"""


async def violations(page: Page) -> list[str]:
    """Return the violations of WCAG 2.2 AA and of best practices on the page."""
    # The page's content security policy blocks foreign scripts: run axe by the debugger.
    if not await page.evaluate("'axe' in window"):
        session = await page.context.new_cdp_session(page)
        await session.send("Runtime.evaluate", {"expression": _AXE})
        await session.detach()
    found: list[str] = await page.evaluate(_RULES)
    return found
