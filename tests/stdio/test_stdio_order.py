"""Order over a real process: O1, O9, O10, cancellation, and requests to the client."""

from tests.support.stdio_process import StdioProcess, notification, request


def test_handled_in_arrival_order_up_to_the_first_await() -> None:
    # O10
    with StdioProcess() as process:
        process.start()
        messages = []
        for n in range(300):
            if n % 3 == 0:
                messages.append(request(n, "test/later", {"n": n}))
            else:
                messages.append(notification("test/mark", {"n": n}))
        process.send(*messages, request("end", "test/marks"))
        assert process.answer("end")["result"] == list(range(300))


def test_the_response_precedes_what_names_its_id() -> None:
    # O1
    with StdioProcess() as process:
        process.start()
        process.send(*(request(n, "test/reply") for n in range(20)))
        created = used = 0
        while used < 20:
            message = process.next()
            created += "method" not in message
            used += message.get("method") == "test/uses"
            assert used <= created


def test_responses_and_notifications_share_one_queue() -> None:
    # O9: deltas, then their notification, then the response
    with StdioProcess() as process:
        process.start()
        process.send(request(1, "test/deltas", {"count": 500, "blocks": 3}))
        texts: dict[str, str] = {}
        while (message := process.next()).get("method") != "test/done":
            for delta in message.get("params", {}).get("deltas", []):
                text = texts.setdefault(delta["blockId"], "")
                assert delta["at"] == len(text)
                texts[delta["blockId"]] = text + delta["add"]
        assert [len(texts[f"b{n}"]) for n in range(3)] == message["params"]["at"]
        assert process.next()["id"] == 1


def test_cancel_request() -> None:
    with StdioProcess() as process:
        process.start()
        process.send(
            request(1, "test/forever"),
            request(2, "test/forever"),
            notification("$/cancelRequest", {"id": 1}),
            notification("$/cancelRequest", {"id": 99}),
            notification("$/cancelRequest", {"id": 1}),
            notification("$/cancelRequest", {}),
            notification("$/cancelRequest"),
        )
        error = process.answer(1)["error"]
        assert error["code"] == -32800
        assert error["data"]["code"] == "RequestCancelled"
        assert process.result("test/echo") == {}
        process.send(notification("$/cancelRequest", {"id": 2}))
        assert process.answer(2)["error"]["code"] == -32800


def test_requests_to_the_client() -> None:
    with StdioProcess() as process:
        process.start()
        process.send(request(1, "test/ask", {}), request(2, "test/ask", {}))
        asked = [process.next_method("client/ask") for _ in range(2)]
        assert [one["id"] for one in asked] == ["k1", "k2"]
        process.send(
            {"jsonrpc": "2.0", "id": "k99", "result": {}},
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
            {"jsonrpc": "2.0", "id": "k2", "result": {"a": 2}},
            {"jsonrpc": "2.0", "id": "k2", "result": {"a": 3}},
            {"jsonrpc": "2.0", "id": "k1", "result": {"a": 1}},
        )
        assert process.answer(1)["result"] == {"a": 1}
        assert process.answer(2)["result"] == {"a": 2}


def test_answers_that_are_errors_or_nonsense() -> None:
    with StdioProcess() as process:
        process.start()
        answers = [
            ({"error": {"code": -32601, "message": "no"}}, -33015),
            ({"error": {"code": 7, "message": "broken"}}, -32603),
            ({"error": 5}, -32603),
            ({"result": {"a": "text"}}, -32603),
            ({"result": None}, -32603),
        ]
        for n, (answer, code) in enumerate(answers, 1):
            process.send(request(n, "test/ask", {}))
            asked = process.next_method("client/ask")
            process.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
            assert process.answer(n)["error"]["code"] == code


def test_a_wait_given_up_is_told_to_the_client() -> None:
    with StdioProcess() as process:
        process.start()
        process.send(request(1, "test/ask", {}))
        asked = process.next_method("client/ask")
        process.send(notification("$/cancelRequest", {"id": 1}))
        assert process.answer(1)["error"]["code"] == -32800
        assert process.next_method("$/cancelRequest")["params"] == {"id": asked["id"]}
        process.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"a": 1}})
        assert process.result("test/echo") == {}
