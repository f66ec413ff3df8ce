//! Whose token is it?

use std::time::{Duration, SystemTime};

use quarry::cluster::{TokenError, Tokens};
use serde_json::{Value, json};

use super::api_server::{ACCOUNT, ApiServer, Fault, good, token};

const HOUR: Duration = Duration::from_secs(3600);

async fn review(server: &ApiServer, token: &str) -> Result<String, TokenError> {
    let tokens = Tokens::new(&server.cluster(), ACCOUNT);
    tokens.review(token, SystemTime::now()).await.map(|token| token.node)
}

/// Reviews a token of node n1 whose status is changed like this.
async fn review_with(change: impl FnOnce(&mut Value)) -> TokenError {
    let server = ApiServer::new();
    let token = token(&server, "n1", 1, HOUR);
    let mut status = good("n1");
    change(&mut status);
    server.know_token(&token, status);
    let error = review(&server, &token).await.unwrap_err();
    assert!(!error.to_string().contains(&token) && !format!("{error:?}").contains(&token));
    error
}

#[tokio::test]
async fn a_nodes_token_names_its_node_and_its_end() {
    let server = ApiServer::new();
    let token = token(&server, "n1", 1, HOUR);
    let tokens = Tokens::new(&server.cluster(), ACCOUNT);
    let reviewed = tokens.review(&token, SystemTime::now()).await.unwrap();
    assert_eq!(reviewed.node, "n1");
    let lasts = reviewed.expires.duration_since(SystemTime::now()).unwrap();
    assert!(lasts <= HOUR && lasts > HOUR - Duration::from_secs(60));
}

#[tokio::test]
async fn a_token_of_another_nodes_pod_speaks_for_that_node() {
    let server = ApiServer::new();
    let token = token(&server, "n2", 1, HOUR);
    assert_eq!(review(&server, &token).await.unwrap(), "n2");
}

#[tokio::test]
async fn a_wrong_token_is_refused_in_words() {
    let error = review(&ApiServer::new(), "nonsense").await.unwrap_err();
    assert!(error.to_string().contains("invalid bearer token"), "{error}");
    let silent = review_with(|status| *status = json!({})).await;
    assert!(silent.to_string().contains("does not know it"), "{silent}");
}

#[tokio::test]
async fn a_token_that_is_meant_for_somebody_else_is_refused() {
    // A server that does not know of audiences leaves them out, and finds every token good.
    for audiences in [json!(["https://kubernetes.default.svc"]), json!([]), Value::Null] {
        let error = review_with(|status| status["audiences"] = audiences).await;
        assert!(matches!(error, TokenError::Audience), "{error}");
    }
}

#[tokio::test]
async fn a_token_of_another_account_is_refused() {
    for other in ["system:serviceaccount:quarry:default", "system:serviceaccount:other:quarry-node", "admin"]
    {
        let error = review_with(|status| status["user"]["username"] = json!(other)).await;
        assert!(error.to_string().contains(other), "{error}");
        assert!(error.to_string().contains("system:serviceaccount:quarry:quarry-node"), "{error}");
    }
}

#[tokio::test]
async fn a_token_that_is_bound_to_no_node_is_refused() {
    let name = "authentication.kubernetes.io/node-name";
    for nodes in [json!({}), json!({ name: [] }), json!({ name: [""] }), json!({ name: ["n1", "n2"] })] {
        let error = review_with(|status| status["user"]["extra"] = nodes).await;
        assert!(matches!(error, TokenError::NoNode), "{error}");
    }
}

#[tokio::test]
async fn a_token_that_has_ended_is_refused_whatever_the_server_says() {
    let server = ApiServer::new();
    let token = token(&server, "n1", 1, HOUR);
    let tokens = Tokens::new(&server.cluster(), ACCOUNT);
    let later = SystemTime::now() + 2 * HOUR;
    assert!(matches!(tokens.review(&token, later).await, Err(TokenError::Ended(_))));
    server.know_token("opaque", good("n1"));
    assert!(matches!(review(&server, "opaque").await, Err(TokenError::Ended(_))));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_say_is_no_refusal() {
    for fault in [Fault::Code(500), Fault::Code(403), Fault::Silence] {
        let server = ApiServer::new();
        let token = token(&server, "n1", 1, HOUR);
        server.fault("POST", "tokenreviews", fault);
        let error = review(&server, &token).await.unwrap_err();
        assert!(matches!(error, TokenError::Unknown(_)), "{error}");
    }
}
