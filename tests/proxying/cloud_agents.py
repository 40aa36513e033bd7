"""Agents on the clients of Google, AWS and Ollama's HTTP API; each keeps its whole history, and calls tools."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import anthropic
import boto3
import httpx2
from botocore.config import Config
from google import genai
from google.genai import types

from proxying.agents import TOOL, Agent, AnthropicAgent
from proxying.provider import until_the_end

AGENT_KEY = ("AKIAAGENT", "agent-secret")


class GeminiAgent(Agent):
    """google-genai, by API key."""

    model = "gemini-2.5-pro"

    def begin(self) -> None:
        self.client = until_the_end(self.new_client())
        self.history.append(types.Content(role="user", parts=[types.Part(text=self.task)]))

    def new_client(self) -> genai.Client:
        return genai.Client(api_key=self.key, http_options={"base_url": self.url, "headers": self.headers})

    def step(self, result: str) -> None:
        declared = {"name": "read_file", "parameters_json_schema": TOOL}
        config: Any = {"system_instruction": "You are a careful agent.", "max_output_tokens": 100}
        config |= {"tools": [{"function_declarations": [declared]}], "automatic_function_calling": {"disable": True}}
        asked: Any = {"model": self.model, "contents": self.history, "config": config}
        if self.stream:
            *_, answer = self.client.models.generate_content_stream(**asked)
        else:
            answer = self.client.models.generate_content(**asked)
        headers = {name.lower(): value for name, value in answer.sdk_http_response.headers.items()}
        self.said.append(headers["x-compact"])
        content = answer.candidates[0].content
        assert content.parts[0].function_call.args["path"].startswith("src/part_")
        self.history.append(content)
        response = types.Part.from_function_response(name="read_file", response={"result": result})
        self.history.append(types.Content(role="user", parts=[response]))


class VertexAgent(GeminiAgent):
    """google-genai at Vertex, by a token."""

    def new_client(self) -> genai.Client:
        from google.oauth2.credentials import Credentials

        options: Any = {"base_url": self.url, "api_version": "v1", "headers": self.headers}
        token = Credentials(token=self.key)
        return genai.Client(vertexai=True, project="p", location="l", credentials=token, http_options=options)


class GeminiArrayAgent(Agent):
    """Gemini over plain HTTP, with the key in the query, and streams without `alt=sse`: one JSON array."""

    def begin(self) -> None:
        self.client = until_the_end(httpx2.Client(timeout=60))
        self.history.append({"role": "user", "parts": [{"text": self.task}]})

    def step(self, result: str) -> None:
        method = "streamGenerateContent" if self.stream else "generateContent"
        body = {"contents": self.history, "generationConfig": {"maxOutputTokens": 100}}
        url = f"{self.url}/v1beta/models/gemini-2.5-pro:{method}"
        answer = self.client.post(url, params={} if self.stream else {"key": self.key}, json=body)
        self.said.append(answer.headers["x-compact"])
        data = answer.json()
        content = (data[-1] if self.stream else data)["candidates"][0]["content"]
        self.history.append(content)
        response = {"functionResponse": {"name": "read_file", "response": {"result": result}}}
        self.history.append({"role": "user", "parts": [response]})


class ConverseAgent(Agent):
    """boto3, with signed requests."""

    model = "anthropic.claude-3-5-sonnet-20241022-v2:0"

    def begin(self) -> None:
        self.history.append({"role": "user", "content": [{"text": self.task}]})
        config = Config(retries={"max_attempts": 1}, read_timeout=60)
        key, secret = AGENT_KEY
        self.client: Any = until_the_end(
            boto3.client(
                "bedrock-runtime",
                region_name="us-east-1",
                endpoint_url=self.url,
                aws_access_key_id=key,
                aws_secret_access_key=secret,
                aws_session_token="agent-token",
                config=config,
            )
        )

    def step(self, result: str) -> None:
        tool = {"toolSpec": {"name": "read_file", "inputSchema": {"json": TOOL}}}
        request: Any = {"modelId": self.model, "messages": self.history, "inferenceConfig": {"maxTokens": 100}}
        request |= {"system": [{"text": "You are a careful agent."}], "toolConfig": {"tools": [tool]}}
        if self.stream:
            answer = self.client.converse_stream(**request)
            use, written = {}, ""
            for event in answer["stream"]:
                use = event.get("contentBlockStart", {}).get("start", {}).get("toolUse") or use
                written += event.get("contentBlockDelta", {}).get("delta", {}).get("toolUse", {}).get("input", "")
            block = {"toolUse": {**use, "input": json.loads(written)}}
        else:
            answer = self.client.converse(**request)
            (block,) = answer["output"]["message"]["content"]
        self.said.append(answer["ResponseMetadata"]["HTTPHeaders"]["x-compact"])
        self.history.append({"role": "assistant", "content": [block]})
        found = {"toolUseId": block["toolUse"]["toolUseId"], "content": [{"text": result}]}
        self.history.append({"role": "user", "content": [{"toolResult": found}]})


class BedrockAnthropicAgent(AnthropicAgent):
    """Anthropic's client for Bedrock, with signed requests."""

    def begin(self) -> None:
        Agent.begin(self)
        key, secret = AGENT_KEY
        client = anthropic.AnthropicBedrock(
            aws_access_key=key, aws_secret_key=secret, aws_region="us-east-1", base_url=self.url
        )
        self.client = until_the_end(client)  # type: ignore[assignment]


class BedrockTokenAgent(AnthropicAgent):
    """The same by a bearer token, which no proxy has to sign anew."""

    def begin(self) -> None:
        Agent.begin(self)
        client = anthropic.AnthropicBedrock(api_key=self.key, aws_region="us-east-1", base_url=self.url)
        self.client = until_the_end(client)  # type: ignore[assignment]


class VertexAnthropicAgent(AnthropicAgent):
    """Anthropic's client for Vertex."""

    def begin(self) -> None:
        Agent.begin(self)
        client = anthropic.AnthropicVertex(
            region="l", project_id="p", access_token=self.key, base_url=f"{self.url}/v1", default_headers=self.headers
        )
        self.client = until_the_end(client)  # type: ignore[assignment]


class OllamaAgent(Agent):
    """Ollama's own API; calls have no ids, and results no names."""

    options: ClassVar[dict[str, Any]] = {}

    def begin(self) -> None:
        self.history.append({"role": "system", "content": "You are a careful agent."})
        self.history.append({"role": "user", "content": self.task})
        self.client = until_the_end(httpx2.Client(timeout=60))

    def step(self, result: str) -> None:
        tool = {"type": "function", "function": {"name": "read_file", "parameters": TOOL}}
        body = {"model": "qwen3:8b", "messages": self.history, "tools": [tool], "options": self.options}
        answer = self.client.post(f"{self.url}/api/chat", json={**body, "stream": self.stream})
        self.said.append(answer.headers["x-compact"])
        lines = [json.loads(line) for line in answer.text.splitlines()]
        (calls,) = [line["message"]["tool_calls"] for line in lines if "tool_calls" in line["message"]]
        self.history.append({"role": "assistant", "content": "", "tool_calls": calls})
        self.history.append({"role": "tool", "content": result})


CLOUD_AGENTS: dict[str, type[Agent]] = {
    "gemini": GeminiAgent,
    "gemini-array": GeminiArrayAgent,
    "vertex": VertexAgent,
    "converse": ConverseAgent,
    "bedrock-anthropic": BedrockAnthropicAgent,
    "bedrock-token": BedrockTokenAgent,
    "vertex-anthropic": VertexAnthropicAgent,
    "ollama": OllamaAgent,
}
SIGNED = ("converse", "bedrock-anthropic")
