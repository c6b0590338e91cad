"""One good reply, or one event, of every shape: what the fuzz test bends."""

import json
from typing import Any

from tests.channels.settings import chat_body

_SOURCE = {"url": "https://a.example/1", "title": "A"}
_RESPONSE = {
    "id": "r",
    "object": "response",
    "status": "completed",
    "model": "m",
    "incomplete_details": None,
    "output": [
        {
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "search", "queries": ["q"], "sources": [_SOURCE]},
        },
        {"type": "search_results", "queries": ["q"], "results": [_SOURCE]},
        {
            "type": "doubao_app_call",
            "blocks": [{"type": "search", "queries": ["q"], "results": [{"text_card": _SOURCE}]}],
        },
        {"type": "message", "content": [{"type": "output_text", "text": "Tea [1].", "annotations": [_SOURCE]}]},
    ],
    "usage": {"input_tokens": 9, "output_tokens": 9, "cost": {"total_cost": 0.1}, "tool_usage": {"web_search": 1}},
}
_BLOCKS = [
    {"type": "server_tool_use", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "content": [_SOURCE]},
    {"type": "text", "text": "Tea.", "citations": [_SOURCE]},
]
_CANDIDATE = {
    "candidates": [
        {
            "content": {"parts": [{"text": "茶 is hot."}, {"text": "hm", "thought": True}]},
            "finishReason": "STOP",
            "groundingMetadata": {
                "webSearchQueries": ["q"],
                "groundingChunks": [{"web": {"uri": "https://a.example/1", "title": "a.example"}}],
                "groundingSupports": [
                    {"segment": {"startIndex": 0, "endIndex": 3, "text": "茶"}, "groundingChunkIndices": [0]}
                ],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 3},
}
_GENERATION = {
    "output": {
        "choices": [{"finish_reason": "stop", "message": {"content": [{"text": "Tea[ref_1]."}]}}],
        "search_info": {"search_results": [{"index": 1, **_SOURCE}], "search_queries": ["q"]},
    },
    "usage": {"input_tokens": 9, "plugins": {"search": {"count": 1}}},
    "request_id": "r",
}
_TOOL_CALLS = {
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"tool_calls": [{"id": "t", "function": {"name": "web_search", "arguments": "{}"}}]},
        }
    ]
}

SHAPES: list[Any] = [
    json.loads(chat_body("Tea [1].", evidence={"search_results": [_SOURCE], "citations": ["https://a.example/1"]})),
    {"choices": [{"index": 0, "delta": {"content": "Tea."}, "finish_reason": "stop"}]},
    _RESPONSE,
    {"type": "response.completed", "response": _RESPONSE},
    {"type": "response.output_item.done", "item": _RESPONSE["output"]},
    {"id": "r", "object": "response", "status": "queued", "output": []},
    {
        "id": "m",
        "type": "message",
        "model": "m",
        "content": _BLOCKS,
        "stop_reason": "end_turn",
        "usage": {"output_tokens": 1},
    },
    {"id": "m", "type": "message", "content": _BLOCKS, "stop_reason": "pause_turn"},
    {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Tea."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": _SOURCE}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    _CANDIDATE,
    [_CANDIDATE],
    _GENERATION,
    _TOOL_CALLS,
    {"tools": [{"type": "function"}]},
    {"object": "fiber", "status": "succeeded", "context": {"output": "x", "references": [_SOURCE]}},
    {"data": [{"b64_json": "AAAA"}]},
    {"type": "image_generation.partial_succeeded", "url": "https://a.example/x.png"},
    {"output": {"task_id": "t", "task_status": "RUNNING"}},
    {"output": {"task_id": "t", "task_status": "SUCCEEDED", "results": [{"url": "https://a.example/x.png"}]}},
    {"results": [{"urls": {"regular": "https://a.example/x.png"}, "user": {"name": "J"}, "links": {}}]},
    {"photos": [{"src": {"large": "https://a.example/x.png"}, "photographer": "J"}]},
    {"Response": {"Pages": [json.dumps(_SOURCE)]}},
    {"Response": {"Choices": [{"FinishReason": "stop", "Message": {"Content": "Tea."}}]}},
    {"id": 7, "status": "publish", "slug": "a", "link": "https://s.example/a/"},
    {"data": {"id": 1, "documentId": "d", "publishedAt": None}},
    {"errors": [{"message": "no", "extensions": {"code": "RECORD_NOT_UNIQUE"}}]},
    {"errcode": 45009, "errmsg": "quota"},
    {"publish_id": 1, "publish_status": 3},
]
