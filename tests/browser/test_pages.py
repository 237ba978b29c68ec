"""What a reader does with a page: load, sort, filter, hover, hide, zoom, share, print; by keyboard too."""

import re

import pytest

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}
DARK = {"color_scheme": "dark"}


@pytest.mark.parametrize("look", [{}, PHONE, DARK], ids=["desktop", "phone", "dark"])
@pytest.mark.parametrize("name", ["report_page", "split_page", "hostile_page"])
def test_a_page_loads_fits_and_passes_the_audit(visit, request, name, look):
    view = visit(request.getfixturevalue(name), **look)
    width = view.page.viewport_size["width"]
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    view.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert view.audit() == []


def test_a_column_is_sorted_by_a_click_and_by_a_key(visit, report_page):
    view = visit(report_page)
    place = view.find_column("board-0", "test_accuracy %")
    before = view.read_column("board-0", place)
    button = view.page.locator("#board-0 thead th").nth(place).locator("button")
    button.click()
    numbers = [float(text.split()[0]) for text in view.read_column("board-0", place)]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 3
    head = view.page.locator("#board-0 thead th").nth(place)
    assert head.get_attribute("aria-sort") == "descending"
    assert f"sort-board-0={place}d" in view.address
    button.press("Enter")
    assert view.read_column("board-0", place) == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    assert "sorted by" in view.page.locator("#said").text_content()


def test_rows_are_filtered_by_words(visit, report_page):
    view = visit(report_page)
    view.page.get_by_label("Only rows with these words").first.fill("prox")
    assert view.read_column("board-0", 0) == ["fedprox"]
    assert "filter-board-0=prox" in view.address
    assert view.page.locator("#said").text_content() == "1 row"


def test_the_pointer_on_a_chart_tells_round_and_values(visit, report_page):
    view = visit(report_page)
    area = view.page.locator("#curves-place .u-over")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    view.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert re.fullmatch(r"round: \d", view.page.locator("#curves-place .readout").text_content())
    values = view.page.locator("#curves-place .value").all_text_contents()
    assert len(values) == 3
    assert all(0 <= float(value) <= 100 for value in values)


def test_a_line_is_hidden_and_comes_again(visit, report_page):
    view = visit(report_page)
    view.page.locator("#curves-place").get_by_label("fedprox").uncheck()
    assert view.drawn == ["fedavg", "scaffold"]
    assert "shown=0.2" in view.address
    view.page.locator("#curves-place").get_by_role("button", name="Hide all").click()
    assert view.drawn == []
    assert view.page.locator("#curves-place .chart").text_content() == "Nothing is chosen."
    view.page.locator("#curves-place").get_by_role("button", name="Show all").click()
    assert view.drawn == ["fedavg", "fedprox", "scaffold"]
    assert "shown" not in view.address


def test_each_run_metrics_and_other_axes_are_drawn(visit, report_page):
    view = visit(report_page)
    view.page.get_by_label("Lines", exact=True).select_option("runs")
    assert len(view.drawn) == 12  # of 18: more would hide one another
    view.page.locator("#curves-place").get_by_role("button", name="Show all").click()
    assert len(view.drawn) == 18
    view.page.get_by_label("Metric", exact=True).select_option("train_loss")
    view.page.get_by_label("Along", exact=True).select_option("bytes")
    assert view.page.evaluate("curvePanel.chart.plot.axes[0].label") == "MB moved"
    assert all(part in view.address for part in ("lines=runs", "metric=train_loss", "x=bytes"))


def test_a_chart_is_zoomed_by_dragging_and_by_keys(visit, report_page):
    view = visit(report_page)
    whole = view.zoom
    area = view.page.locator("#curves-place .u-over")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    y = box["y"] + box["height"] / 2
    view.page.mouse.move(box["x"] + 0.3 * box["width"], y)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + 0.6 * box["width"], y, steps=4)
    view.page.mouse.up()
    low, high = view.zoom
    assert whole[0] < low < high < whole[1]
    assert "zoom=" in view.address
    chart = view.page.locator("#curves-place .chart")
    chart.press("0")
    assert view.zoom == whole
    assert "zoom" not in view.address
    chart.press("+")
    low, high = view.zoom
    assert high - low == pytest.approx((whole[1] - whole[0]) / 2)
    chart.press("-")
    assert view.zoom == whole
    view.page.mouse.move(2, 2)  # away, and with it the cursor
    chart.press("ArrowRight")
    chart.press("ArrowRight")
    assert view.page.locator("#said").text_content().startswith("round 2: fedavg ")


def test_a_view_is_shared_by_its_address(visit, report_page):
    first = visit(report_page)
    place = first.find_column("board-0", "test_accuracy %")
    first.page.locator("#board-0 thead th").nth(place).locator("button").click()
    first.page.get_by_label("Metric", exact=True).select_option("train_loss")
    first.page.get_by_label("Along", exact=True).select_option("bytes")
    first.page.locator("#curves-place .chart").press("+")
    first.page.locator("#curves-place").get_by_label("fedavg").uncheck()
    first.page.locator("nav a", has_text="Curves").click()
    first.page.wait_for_function("location.hash.includes('at=curves')")
    second = visit(report_page, first.address)
    assert second.address == first.address
    assert second.drawn == first.drawn == ["fedprox", "scaffold"]
    assert second.zoom == pytest.approx(first.zoom, rel=1e-5)
    assert second.read_column("board-0", 0) == first.read_column("board-0", 0)
    assert second.page.get_by_label("Metric", exact=True).input_value() == "train_loss"


@pytest.mark.parametrize(
    "fragment",
    ["#sort-board-0=99d&metric=none&x=&zoom=a_b&shown=7.x&group=5&party-run=99", "#%", "#nowhere"],
)
def test_an_address_that_nobody_made_does_no_harm(visit, report_page, fragment):
    view = visit(report_page, fragment)
    assert view.page.locator("#curves-place .chart").count() == 1
    assert view.page.locator("#party-table tbody tr").count() == 12


def test_parties_are_shown_of_each_row_and_of_a_run(visit, report_page):
    view = visit(report_page)
    assert view.page.locator("#party-table tbody tr").count() == 12
    view.page.get_by_label("One run", exact=True).select_option(index=7)
    assert "party-run=7" in view.address
    view.page.locator("#party-table th button", has_text="training examples").click()
    sizes = [int(text) for text in view.read_column("party-table", 1)]
    assert sizes == sorted(sizes, reverse=True)
    view.page.get_by_label("At", exact=True).select_option("best")
    assert "party-round=best" in view.address


def test_the_numbers_of_curves_are_there_as_a_table(visit, report_page):
    view = visit(report_page)
    view.page.get_by_text("The numbers of these curves").click()
    rows = view.page.locator("#curves-place details tbody tr")
    rows.first.wait_for()  # browsers tell of what was opened a moment later
    assert rows.count() == 8
    assert rows.first.locator("td").count() == 3


def test_a_cell_of_a_heat_map_is_told(visit, split_page):
    view = visit(split_page)
    cell = view.page.locator("table.heat tbody tr").nth(4).locator("td").nth(2)
    cell.hover()
    told = view.page.locator(".readout").text_content()
    assert told == f"party 4, 2: {cell.text_content()}"


def test_all_controls_are_reached_by_keys(visit, report_page):
    view = visit(report_page)
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    for _ in range(200):
        view.page.keyboard.press("Tab")
        seen.add(
            view.page.evaluate("document.activeElement.tagName + document.activeElement.className")
        )
    assert {"A", "BUTTON", "INPUT", "SELECT", "DIVchart", "SUMMARY"} <= seen


def test_what_a_file_says_never_runs(visit, hostile_page):
    view = visit(hostile_page)
    assert view.page.evaluate("window.taken") is None
    assert view.page.locator("img").count() == 0
    assert "</script><img" in view.page.locator("h1").text_content()
    assert view.drawn[0].startswith("</script>")
    view.page.get_by_text("The numbers of these curves").click()
    view.page.locator("#curves-place details tbody tr").first.wait_for()
    assert view.page.locator("img").count() == 0


def test_a_script_that_got_in_would_not_run(visit, split_page):
    view = visit(split_page)
    code = """
    (() => {
      const script = document.createElement("script");
      try { script.textContent = "window.taken = 1"; document.body.append(script); } catch {}
      try { document.body.innerHTML += "<img src=x onerror='window.taken = 1'>"; } catch {}
      return window.taken;
    })()
    """
    assert view.page.evaluate(code) is None
    assert any("Trusted" in one or "Content Security" in one for one in view.faults)
    view.faults.clear()


def test_without_scripts_the_tables_are_there(visit, report_page):
    view = visit(report_page, java_script_enabled=False)
    assert view.page.locator("#board-0").is_visible()
    assert not view.page.locator("#share").is_visible()
    assert view.page.locator("#curves noscript").count() == 1


def test_in_print_there_are_no_controls_and_nothing_is_cut(visit, report_page):
    view = visit(report_page)
    view.page.emulate_media(media="print")
    assert not view.page.locator("nav").is_visible()
    assert not view.page.locator("#curves-place .controls").first.is_visible()
    assert view.page.locator("#curves-place canvas").is_visible()
    assert len(view.page.pdf(format="A4")) > 20_000
