//! The MCP server over HTTP behind the gateway and the bare proxy: the official Rust SDK with one tool that echoes, without
//! sessions and answering in JSON, which is what the goals were set against.

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, object,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::load::PATH;

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({
            "type": "object",
            "properties": { "message": { "type": "string" } },
            "required": ["message"],
        });
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "says it again", object(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = request.arguments.and_then(|mut arguments| arguments.remove("message"));
        let Some(Value::String(message)) = message else {
            return Err(ErrorData::invalid_params("there is no message", None));
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(message)]).into())
    }
}

pub(super) fn app() -> axum::Router {
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service: StreamableHttpService<Echo, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Echo), std::sync::Arc::default(), config);
    axum::Router::new().nest_service(PATH, service)
}
